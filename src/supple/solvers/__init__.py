"""Methods, one file each. A solver's options are a frozen dataclass; `begin(problem)` puts it to work."""

from supple.solvers.gpbd import GPBD
from supple.solvers.newton import Newton
from supple.solvers.pbd import PBD
from supple.solvers.pbng import PBNG
from supple.solvers.pxpbd import BPXPBD, FPXPBD
from supple.solvers.solver import Run, Solver
from supple.solvers.xpbd import XPBD, BlockXPBD

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver for solver in (PBNG, Newton, XPBD, BlockXPBD, BPXPBD, FPXPBD, GPBD, PBD)
}
"""Every solver by the name it has in scene files and on the command line."""


def default_solver() -> Solver:
    """The method where none is asked for."""
    return PBNG()


__all__ = [
    "BPXPBD",
    "FPXPBD",
    "GPBD",
    "PBD",
    "PBNG",
    "SOLVERS",
    "XPBD",
    "BlockXPBD",
    "Newton",
    "Run",
    "Solver",
    "default_solver",
]
