"""Linear algebra of Newton systems: assembled Hessian, multilevel preconditioner and linear solvers.

assembly = Assembly(problem)                     # once per mesh: sparsity pattern
hierarchy = Multilevel(assembly)                 # once per mesh: aggregates
H = assembly.hessian("exact")                    # at the problem's u
M = hierarchy.at(H, assembly.positions)          # may raise NotPositive
solution = pcg(H, assembly.restrict(problem.states.net), M, eta=0.1)

`assembly.matrix` and `solve` are the device versions of `assembly.hessian` and `pcg`: their matrix and
vectors stay in device memory.
"""

from supple.linear.assembly.hessian import Assembly
from supple.linear.components import Parts
from supple.linear.follower import FollowerSystem
from supple.linear.gas_system import GasSystem, Matrix, add_gas_stiffness
from supple.linear.multilevel.preconditioner import Multilevel, NotPositive, Preconditioner
from supple.linear.multilevel_cg import (
    Solution,
    curvature_along,
    host_product,
    pcg,
    shares_along,
    solve,
    solve_per_body,
)

__all__ = [
    "Assembly",
    "FollowerSystem",
    "GasSystem",
    "Matrix",
    "Multilevel",
    "NotPositive",
    "Parts",
    "Preconditioner",
    "Solution",
    "add_gas_stiffness",
    "curvature_along",
    "host_product",
    "pcg",
    "shares_along",
    "solve",
    "solve_per_body",
]
