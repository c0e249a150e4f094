"""Multiresolution PBNG for cloth [PBNG section 8.2].

A sweep propagates corrections by a few vertices only, so fine cloth stays too long or too short until many
sweeps are done. Coarser layers of the cloth lead the way. One iteration l = 1, 2, ... is

    several sweeps over the coarsest layer
    one sweep over each finer layer in turn, the cloth itself the last (the paper: all of them at once)
    κ = √(1 - l²/r²) for the next iteration, 1 in the first,  r = (number of iterations) + pad

and after the last iteration a final pass of sweeps over the cloth alone. κ multiplies the contribution of the
layers to the cloth. There are three couplings:

- "divided" is the paper's: weak constraints bind the layers to each other, and stiffness and mass are divided
  between all layers. The iteration ends with 1/(layers + 1) of the stiffness and mass of the cloth, which
  gives the right shape under its own weight only.
- "bound": the cloth keeps its full stiffness and mass, and the layers are additional. In E + κ (E of layers
  and bindings), a vertex of a layer sees no κ, and in the end E remains.
- "carried", our own and the default: vertices bound to a layer move with it, and the layer is loaded by the
  net forces of the finer one. As in a multigrid method [Brandt 1977], it does not move if the cloth is in
  equilibrium.

The first two are slow, since a layer that moves on its own pulls at the vertices bound to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar, Literal

from supple.model.model import Model
from supple.problem import Balance, Problem
from supple.solvers.base import Run, Solver
from supple.solvers.pbng import PBNG, PBNGRun
from supple.solvers.vertexwise.cloth_hierarchy import Layers, layers_of
from supple.solvers.vertexwise.multiresolution import BoundLayers, Multiresolution, ProlongedLayers
from supple.support.arguments import check_choice, check_integer, check_iterations, check_number
from supple.support.keywords import suggest_keywords
from supple.support.text import pluralize


@suggest_keywords
@dataclass(frozen=True)
class MPBNG(Solver):
    """PBNG with coarser layers of the cloth, which lead the way.

    Args:
        coupling: "carried", vertices bound to a layer move with it; "bound", layers pull at them; "divided",
            the same with stiffness and mass divided between all layers, as the paper prints it.
        layers: Largest number of layers. None creates all layers that have enough vertices.
        cycle: Iterations with layers in a step, followed by PBNG sweeps. If a call sets a number of
            iterations and no tolerance, all of these have layers.
        coarse_sweeps: Sweeps over the coarsest layer per iteration.
        final_sweeps: Sweeps over the cloth alone after the last iteration with layers.
        binding: Stiffness of the bindings between layers, relative to the stiffness of the layers.
        pad: Difference between r in κ and the number of iterations.
        iterations: Iterations per step unless the call sets a limit.
    """

    name: ClassVar[str] = "mpbng"

    coupling: Literal["carried", "bound", "divided"] = "carried"
    layers: int | None = None
    cycle: int = 20
    coarse_sweeps: int = 5
    final_sweeps: int = 7
    binding: float = 1.0
    pad: float = 0.05
    iterations: int | None = None

    def __post_init__(self) -> None:
        check_choice("coupling", self.coupling, ("carried", "bound", "divided"))
        if self.layers is not None:
            check_integer("layers", self.layers)
        check_integer("cycle", self.cycle)
        check_integer("coarse_sweeps", self.coarse_sweeps)
        check_integer("final_sweeps", self.final_sweeps, at_least=0)
        check_number("binding", self.binding, above=0)
        check_number("pad", self.pad, above=0)
        check_iterations(self.iterations)

    def begin(self, problem: Problem) -> Run:
        """Start a run. Problems that cannot use layers get a PBNG run whose notes give the reason.

        Args:
            problem: Problem to solve.

        Returns:
            The run.
        """
        layers = multiresolution(problem, self)
        return WithoutLayers(layers, problem) if isinstance(layers, str) else MPBNGRun(self, layers)

    def memory(self, model: Model, number: int) -> int:
        """Estimate the memory of a run [bytes]: PBNG plus layers, about a third of the model.

        Args:
            model: Model.
            number: Size of a floating-point number [bytes].

        Returns:
            Memory [bytes].
        """
        return PBNG().memory(model, number) + model.elements * 60 * number


def multiresolution(problem: Problem, options: MPBNG) -> Multiresolution | str:
    """Return the cloth layers of a problem, or the reason why layers are impossible.

    Layers are cached on the problem while its terms stay the same.
    """
    if problem.contacts or any(term.capacity is not None for term in problem.model.terms):
        return "no layers, which know neither obstacles nor stencils that come and go: sweeps of pbng"
    began = perf_counter()
    layers: Layers | None = problem.get_shared(
        f"at most {options.layers} layers",
        lambda: layers_of(problem.model, options.layers, problem.device.threads),
    )
    if layers is None:
        return "no layers, since there is no cloth that is fine enough for them: sweeps of pbng"
    cache: list[Multiresolution] = problem.get_shared(
        f"{options.coupling} layers, {options.layers} at most, by {options.binding}", list
    )
    if not cache or cache[0].fine_terms is not problem.model.terms:
        cache[:] = [_make_layers(problem, layers, options)]
        cache[0].seconds = perf_counter() - began
    return cache[0]


def _make_layers(problem: Problem, layers: Layers, options: MPBNG) -> Multiresolution:
    if options.coupling == "carried":
        return ProlongedLayers(problem, layers)
    return BoundLayers(problem, layers, options.coupling == "divided", options.binding)


class WithoutLayers(PBNGRun):
    """PBNG run that reports the reason for having no layers."""

    def __init__(self, reason: str, problem: Problem) -> None:
        super().__init__(PBNG(), problem)
        self._reason = reason

    def notes(self, member: int = 0) -> list[str]:
        return [self._reason, *super().notes(member)]


class MPBNGRun(Run):
    """MPBNG run: iterations with layers, then PBNG sweeps."""

    check_every = 5

    def __init__(self, options: MPBNG, layers: Multiresolution) -> None:
        self.options, self.layers, self.problem = options, layers, layers.problem
        self._cycle, self._done, self._ended = options.cycle, 0, False
        self._final: Run | None = None
        self.layers.begin()

    def set_targets(self, tolerance: float | None, max_iterations: int | None, budget: float | None) -> None:
        """Use layers in every iteration for a fixed iteration count without tolerance."""
        if max_iterations is not None:
            self._cycle = max_iterations if tolerance is None else min(self._cycle, max_iterations)

    @property
    def colors(self) -> int:
        return self.layers.groups[0].batches.colors

    @property
    def needs_monitoring(self) -> bool:
        return self._final is not None and self._final.needs_monitoring

    def collect_rejected(self) -> list[int]:
        final = self._final.collect_rejected()[0] if self._final else 0
        return [self.layers.collect_rejected() + final]

    def notes(self, member: int = 0) -> list[str]:
        hierarchy = self.layers.layers
        counts = [f"{count:,}" for count in hierarchy.counts]
        notes = [
            f"layers of {', '.join(counts[:-1])} and {counts[-1]} vertices, bound at "
            f"{len(hierarchy.binding.vertices):,} places, set up in {self.layers.seconds:.2f} s",
            f"{pluralize(self._done, 'iteration')} with layers",
        ]
        return notes + (self._final.notes(member) if self._final else [])

    def advance(self, count: int) -> None:
        while count > 0 and self._done < self._cycle:
            self.layers.iterate(self.options.coarse_sweeps, self._kappa())
            self._done, count = self._done + 1, count - 1
        if not self._ended:
            self.layers.write_back()
            if self._done == self._cycle:
                self._end_cycle()
        if count > 0:
            self._final = self._final or PBNG().begin(self.problem)
            self._final.advance(count)

    def _kappa(self) -> float:
        return math.sqrt(1 - (self._done / (self._cycle + self.options.pad)) ** 2)

    def _end_cycle(self) -> None:
        """Run the final pass over the cloth alone; PBNG follows."""
        self._ended = True
        if self.options.final_sweeps:
            PBNG(acceleration=None).begin(self.problem).advance(self.options.final_sweeps)

    def observe(self, balance: Balance, member: int = 0) -> bool:
        return self._final is not None and self._final.observe(balance, member)
