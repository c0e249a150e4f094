"""Methods, one file each. A solver's options are a frozen dataclass; `begin(problem)` puts it to work."""

from supple.solvers.newton import Newton
from supple.solvers.pbng import PBNG
from supple.solvers.solver import Run, Solver

SOLVERS: dict[str, type[Solver]] = {"pbng": PBNG, "newton": Newton}
"""Every solver by the name it has in scene files and on the command line."""

__all__ = ["PBNG", "SOLVERS", "Newton", "Run", "Solver"]
