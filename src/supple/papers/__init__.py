"""The five papers, figure by figure: what each says, what supple shows of it, and the verdict.

papers.toml has all figures and tables; each module named after a paper has its experiments; `account` keeps
what they measure, `page` writes it down.
"""

from supple.papers.registry import Row, experiment, find_rows, rows

__all__ = ["Row", "experiment", "find_rows", "rows"]
