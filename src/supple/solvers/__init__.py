"""Solvers, one module each: a frozen dataclass of options whose `begin(problem)` starts a run.

The header of each module maps its algorithm, most often that of a paper, to functions and letters. Short
names of papers, as in [PBNG eq. 32], are those of README.md, section Papers.
"""

from typing import Any

from supple.solvers.acceleration import (
    SOR,
    Acceleration,
    Anderson,
    Chebyshev,
    PaperChebyshev,
    PaperSOR,
)
from supple.solvers.base import Run, Solver
from supple.solvers.block_xpbd import BlockXPBD
from supple.solvers.bpxpbd import BPXPBD
from supple.solvers.elementwise.gpbd_fabric import (
    FabricProjection as FabricProjection,  # registers it with gpbd
)
from supple.solvers.elementwise.grid_embedded import (
    EmbeddedPair as EmbeddedPair,  # registers it with xpbd, bpxpbd and fpxpbd
)
from supple.solvers.fpxpbd import FPXPBD
from supple.solvers.gpbd import GPBD
from supple.solvers.hybrid import Hybrid
from supple.solvers.mpbng import MPBNG
from supple.solvers.newton import Newton
from supple.solvers.pbd import PBD
from supple.solvers.pbng import PBNG
from supple.solvers.xpbd import XPBD
from supple.support.arguments import format_value, match_name, suggest_name

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (PBNG, MPBNG, Hybrid, Newton, XPBD, BlockXPBD, BPXPBD, FPXPBD, GPBD, PBD)
}
"""All solvers, keyed by their name in scene files and on the command line."""


DEFAULT_SOLVER: type[Solver] = Hybrid
"""Default solver of the Python interface, scene files, the command line and the live page."""


ALIASES: dict[str, tuple[str, dict[str, Any]]] = {"vbd": ("pbng", {"hessian": "exact"})}
"""Further names: those of a solver with certain options. "vbd" is vertex block descent."""


def find_solver(name: str) -> tuple[type[Solver], dict[str, Any]]:
    """Find a solver by its name or alias, whatever its case and underscores.

    Returns:
        The solver class, and the options that an alias stands for.

    Raises:
        ValueError: There is no such solver.
    """
    kind, options = ALIASES.get(name.casefold(), (name, {}))
    known = match_name(kind, SOLVERS)
    if known is None:
        raise ValueError(f"there is no solver {name!r}; {suggest_name(name, [*SOLVERS, *ALIASES])}")
    return SOLVERS[known], dict(options)


def register_solver(kind: type[Solver]) -> None:
    """Register a user-defined solver for scene files, the command line, `list` and the live page.

    Args:
        kind: Subclass of `Solver` with a unique `name`.

    Raises:
        TypeError: `kind` is not a subclass of `Solver`.
        ValueError: The name is not an identifier, or another solver has it.
    """
    if not (isinstance(kind, type) and issubclass(kind, Solver)):
        raise TypeError(f"a solver must be a subclass of supple.solvers.Solver, got {format_value(kind)}")
    name = getattr(kind, "name", None)
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"a solver's name must be a plain word such as 'pbng', got {format_value(name)}")
    if name.casefold() in ALIASES:
        raise ValueError(
            f"the name {name!r} is an alias of {ALIASES[name.casefold()][0]}; choose another name"
        )
    if SOLVERS.get(name, kind) is not kind:
        raise ValueError(
            f"the name {name!r} belongs to the solver {SOLVERS[name].__name__}; choose another name"
        )
    SOLVERS[name] = kind


def default_solver() -> Solver:
    """Return the default solver with its default options."""
    return DEFAULT_SOLVER()


__all__ = [
    "BPXPBD",
    "DEFAULT_SOLVER",
    "FPXPBD",
    "GPBD",
    "MPBNG",
    "PBD",
    "PBNG",
    "SOLVERS",
    "SOR",
    "XPBD",
    "Acceleration",
    "Anderson",
    "BlockXPBD",
    "Chebyshev",
    "Hybrid",
    "Newton",
    "PaperChebyshev",
    "PaperSOR",
    "Run",
    "Solver",
    "register_solver",
]
