"""Reproduction of the five papers, figure by figure: claim, measurement and verdict.

papers.toml lists all figures and tables. Each module named after a paper contains its experiments;
`measurements` stores their quantities, `results_page` writes the results page.
"""

from supple_papers.registry import Row, experiment, find_rows, rows

__all__ = ["Row", "experiment", "find_rows", "rows"]
