"""Linear algebra of Newton's systems: the assembled Hessian, a multilevel preconditioner, and solvers.

assembly = Assembly(problem)                     # once per mesh: the pattern
hierarchy = Multilevel(assembly)                 # once per mesh: aggregates
H = assembly.hessian("exact")                    # at the problem's u
M = hierarchy.at(H, assembly.positions)          # may raise NotPositive
found = pcg(H, assembly.restrict(problem.states.net), M, eta=0.1)

`assembly.matrix` and `solve` are the same where kernels see the numbers, on any device.
"""

from supple.linear.apart import solve_apart
from supple.linear.assembly import Assembly
from supple.linear.multilevel import Multilevel, NotPositive, Preconditioner
from supple.linear.parts import Parts
from supple.linear.pcg import Solution, curvature_along, pcg, product_here, shares_along, solve

__all__ = [
    "Assembly",
    "Multilevel",
    "NotPositive",
    "Parts",
    "Preconditioner",
    "Solution",
    "curvature_along",
    "pcg",
    "product_here",
    "shares_along",
    "solve",
    "solve_apart",
]
