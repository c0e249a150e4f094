"""Registry of figures and tables of the papers with their experiments."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from supple_papers.measurements import Measurements

State = Literal["shown", "illustration", "impossible"]


@dataclass(frozen=True)
class Row:
    """Figure or table of a paper.

    Attributes:
        key: Key such as "pbng-fig7".
        paper: Short name of the paper.
        label: Label such as "Fig. 7".
        claim: Claim of the paper.
        state: Status of the reproduction.
        shows: Measurement of the experiment.
        needs: Missing requirement of an impossible experiment.
    """

    key: str
    paper: str
    label: str
    claim: str
    state: State
    shows: str = ""
    needs: str = ""


Experiment = Callable[["Measurements"], str]
"""Takes measurements and returns the verdict as a sentence."""

_experiments: dict[str, Experiment] = {}


def shows(key: str) -> Callable[[Experiment], Experiment]:
    """Register the experiment of a row."""

    def register(measure: Experiment) -> Experiment:
        _experiments[key] = measure
        return measure

    return register


@cache
def _papers() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("papers.toml").read_text(encoding="utf-8"))


def titles() -> dict[str, str]:
    """Titles of the papers by short name."""
    return {name: entry["title"] for name, entry in _papers().items()}


@cache
def rows() -> dict[str, Row]:
    """All figures and tables by key, in paper order."""
    rows_by_key = {}
    for paper, entries in _papers().items():
        for name, entry in entries.items():
            if name != "title":
                key = f"{paper}-{name}"
                rows_by_key[key] = Row(
                    key, paper, _label(name), state=entry.get("state", "shown"), **_texts(entry)
                )
    return rows_by_key


def _texts(entry: dict[str, str]) -> dict[str, str]:
    return {name: entry[name] for name in ("claim", "shows", "needs") if name in entry}


def _label(name: str) -> str:
    """Convert fig7 to Fig. 7 and table2 to Table 2."""
    return name.replace("fig", "Fig. ").replace("table", "Table ")


def experiment(key: str) -> Experiment:
    """Return the experiment of a row with status "shown"."""
    import_module(f"supple_papers.{rows()[key].paper}")
    return _experiments[key]


def find_rows(names: Iterable[str]) -> list[Row]:
    """Return the rows with the given keys or papers, each once, in the order of the papers.

    Args:
        names: Keys such as "pbng-fig7", or papers such as "bnh".

    Raises:
        ValueError: Unknown key or paper.
    """
    keys = set()
    for name in names:
        chosen = [key for key, row in rows().items() if name in (key, row.paper)]
        if not chosen:
            near = get_close_matches(name.casefold(), [*rows(), *titles()], n=1)
            hint = f"did you mean {near[0]!r}?" if near else "`supple papers` lists all of them."
            raise ValueError(f"there is no figure or table {name!r}; {hint}")
        keys.update(chosen)
    return [row for key, row in rows().items() if key in keys]
