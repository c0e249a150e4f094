"""Multiresolution PBNG for cloth [PBNG: Y. Chen et al. 2024, section 8.2]. The paper's coupling is "divided":

    layers χ₀ ⊃ χ₁ ⊃ ... ⊃ χₙ, χ₀ the cloth                 build_layers (vertexwise/cloth_hierarchy.py)
    1/(n + 1) of membrane stiffness, mass and external forces for each layer
                                                            `stiffness_share` (vertexwise/multiresolution.py)
    for l = 0, ..., k_max - 1                               `MPBNGRun.advance`
        κ ← √(1 - l²/r_des²),  r_des = k_max + r_pad        `_kappa`
        k_c; mass and external forces of χ₁, ..., χₙ: times κ
                                                            BoundLayers._scale_by_kappa
        several sweeps over the coarsest layer χₙ           BoundLayers.iterate
        one sweep over χₙ₋₁, ..., χ₀ in turn
            (in the paper simultaneously)
    final sweeps over the undivided cloth χ₀                `_run_final_sweeps`
    PBNG sweeps to the tolerance, our own                   `MPBNGRun.advance`

The default is coupling="carried", our own: nothing is divided, there is no k_c, and the body of the loop over
l is, after κ,

        for each layer, from fine to coarse                 CarriedLayers.iterate
            u of the layer ← u of the finer layer
            load ← restricted net forces of the finer layer - own net forces
        several sweeps over χₙ
        for χₙ₋₁, ..., χ₀
            u ← u + κ times the prolonged correction        CarriedLayers._prolong
            one sweep

    PBNG                                here
    χ₀, χₙ                              groups[0], groups[n] of `Multiresolution`
    k_max                               cycle; the iteration limit of the call if it is smaller or if there is
                                        no tolerance (`MPBNGRun.set_targets`)
    r_pad                               pad
    "4-6 iterations" of the coarsest    coarse_sweeps
    "6-8 iterations" in the final pass  final_sweeps, once per step; the text allows each iteration, too
    k_c                                 stiffness of `Layers.binding`, times binding_factor, over n + 1 in
                                        "divided"

A sweep propagates corrections by a few vertices only, so fine cloth stays too long or too short until many
sweeps are done. Sweeps over coarser layers of the cloth propagate them over long distances. The couplings
differ in what κ multiplies:

- "divided" is the paper's: κ multiplies k_c and the mass of χ₁, ..., χₙ, as printed, and their external
  forces with it, so that gravity accelerates the layers as before. The loop ends with 1/(n + 1) of membrane
  stiffness, mass and external forces, so that the shape is nearly right if all terms are divided.
- "bound", our own: the cloth keeps its full stiffness and mass, and the layers are additional. The energy is
  E + κ (E of layers and bindings); in the end E remains. κ multiplies k_c at vertices of the cloth. All terms
  of a layer vertex carry κ, which cancels in Aᵢ⁻¹ fᵢ.
- "carried": vertices bound to a layer move with it, and the layer is loaded by the net forces of the finer
  one. κ multiplies the prolonged correction. As in a multigrid method [Brandt 1977], the layer does not move
  if the cloth is in equilibrium.

"divided" and "bound" are slow, since a layer that moves on its own pulls at the vertices bound to it.

Further deviations:

- A layer takes a subset of about a quarter of the vertices (meshes/coarsening.py); the paper remeshes, with
  about the same factor.
- Coarse layers have the membranes of the cloth only: no bending, k_b = 0, and no other terms. Bending,
  springs, weak constraints, pressure and solids act on χ₀ alone, undivided in "divided". External forces,
  in contrast, are all divided: weight, point forces and wind.
- The paper gives no k_c. `Layers.binding` has a quarter of the mean stiffness of the coarse vertices.
- Problems with obstacles or contact get plain PBNG, as does cloth that is too coarse
  (`build_multiresolution`).
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
from supple.solvers.vertexwise.cloth_hierarchy import Layers, build_layers
from supple.solvers.vertexwise.multiresolution import BoundLayers, CarriedLayers, Multiresolution
from supple.support.arguments import check_choice, check_integer, check_iterations, check_number
from supple.support.keywords import suggest_keywords
from supple.support.text import pluralize


@suggest_keywords
@dataclass(frozen=True)
class MPBNG(Solver):
    """PBNG with coarser layers of the cloth, whose sweeps propagate corrections over long distances.

    Args:
        coupling: "carried", vertices bound to a layer move with it; "bound", layers pull at them; "divided",
            the same with stiffness, mass and external forces divided between all layers [PBNG section 8.2].
        layers: Largest number n of coarse layers χ₁, ..., χₙ, without the cloth. None creates all that have
            enough vertices.
        cycle: Iterations k_max with layers in a step, followed by PBNG sweeps. If a call sets a number of
            iterations and no tolerance, all of these have layers.
        coarse_sweeps: Sweeps over the coarsest layer per iteration.
        final_sweeps: Sweeps over the cloth alone after the last iteration with layers.
        binding_factor: Factor on the stiffness k_c of the weak constraints between layers.
        pad: r_pad, the difference between r_des in κ and the number of iterations.
        iterations: Iterations per step unless the call sets a limit.
    """

    name: ClassVar[str] = "mpbng"

    coupling: Literal["carried", "bound", "divided"] = "carried"
    layers: int | None = None
    cycle: int = 20
    coarse_sweeps: int = 5
    final_sweeps: int = 7
    binding_factor: float = 1.0
    pad: float = 0.05
    iterations: int | None = None

    def __post_init__(self) -> None:
        check_choice("coupling", self.coupling, ("carried", "bound", "divided"))
        if self.layers is not None:
            check_integer("layers", self.layers)
        check_integer("cycle", self.cycle)
        check_integer("coarse_sweeps", self.coarse_sweeps)
        check_integer("final_sweeps", self.final_sweeps, at_least=0)
        check_number("binding_factor", self.binding_factor, above=0)
        check_number("pad", self.pad, above=0)
        check_iterations(self.iterations)

    def begin(self, problem: Problem) -> Run:
        """Start a run. Problems that cannot use layers are solved by a PBNG run whose notes give the reason.

        Args:
            problem: Problem to solve.

        Returns:
            The run.
        """
        multiresolution = build_multiresolution(problem, self)
        if isinstance(multiresolution, str):
            return PBNGFallbackRun(multiresolution, problem)
        return MPBNGRun(self, multiresolution)

    def memory(self, model: Model, number: int) -> int:
        """Estimate the memory of a run [bytes]: PBNG plus layers, about a third of the model.

        Args:
            model: Model.
            number: Size of a floating-point number [bytes].

        Returns:
            Memory [bytes].
        """
        return PBNG().memory(model, number) + model.elements * 60 * number


def build_multiresolution(problem: Problem, options: MPBNG) -> Multiresolution | str:
    """Return the cloth layers of a problem, or the reason why layers are impossible.

    Layers are cached on the problem while its terms stay the same.
    """
    if problem.contacts or any(term.capacity is not None for term in problem.model.terms):
        return "mpbng ran as pbng: coarse layers do not support obstacles or changing contacts"
    began = perf_counter()
    layers: Layers | None = problem.get_shared(
        f"at most {options.layers} layers",
        lambda: build_layers(problem.model, options.layers, problem.device.threads),
    )
    if layers is None:
        return "mpbng ran as pbng: no cloth of the scene is fine enough for coarse layers"
    cache: list[Multiresolution] = problem.get_shared(
        f"{options.coupling} layers, {options.layers} at most, by {options.binding_factor}", list
    )
    if not cache or cache[0].fine_terms is not problem.model.terms:
        cache[:] = [_couple_layers(problem, layers, options)]
        cache[0].seconds = perf_counter() - began
    return cache[0]


def _couple_layers(problem: Problem, layers: Layers, options: MPBNG) -> Multiresolution:
    """Couple layers to the cloth as the options say."""
    if options.coupling == "carried":
        return CarriedLayers(problem, layers)
    return BoundLayers(problem, layers, options.coupling == "divided", options.binding_factor)


class PBNGFallbackRun(PBNGRun):
    """PBNG run that reports the reason for having no layers."""

    def __init__(self, reason: str, problem: Problem) -> None:
        super().__init__(PBNG(), problem)
        self._reason = reason

    def notes(self, member: int = 0) -> list[str]:
        return [self._reason, *super().notes(member)]


class MPBNGRun(Run):
    """MPBNG run: iterations with layers, then PBNG sweeps."""

    check_every = 5

    def __init__(self, options: MPBNG, multiresolution: Multiresolution) -> None:
        self.options, self.multiresolution = options, multiresolution
        self.problem = multiresolution.problem
        self._cycle, self._iteration, self._cycle_ended = options.cycle, 0, False
        self._pbng_run: Run | None = None
        self.multiresolution.begin()

    def advance(self, count: int) -> None:
        """Run iterations with layers until the cycle ends, then PBNG sweeps."""
        while count > 0 and self._iteration < self._cycle:
            self.multiresolution.iterate(self.options.coarse_sweeps, self._kappa())
            self._iteration, count = self._iteration + 1, count - 1
        if not self._cycle_ended:
            self.multiresolution.write_back()
            if self._iteration == self._cycle:
                self._run_final_sweeps()
        if count > 0:
            self._pbng_run = self._pbng_run or PBNG().begin(self.problem)
            self._pbng_run.advance(count)

    def _kappa(self) -> float:
        """κ = √(1 - l²/r_des²) of iteration l."""
        return math.sqrt(1 - (self._iteration / (self._cycle + self.options.pad)) ** 2)

    def _run_final_sweeps(self) -> None:
        """Run the final pass over the cloth alone; PBNG follows."""
        self._cycle_ended = True
        if self.options.final_sweeps:
            PBNG(acceleration=None).begin(self.problem).advance(self.options.final_sweeps)

    def set_targets(self, tolerance: float | None, max_iterations: int | None, budget: float | None) -> None:
        """Use layers in every iteration for a fixed iteration count without tolerance."""
        if max_iterations is not None:
            self._cycle = max_iterations if tolerance is None else min(self._cycle, max_iterations)

    def observe(self, balance: Balance, member: int = 0) -> bool:
        return self._pbng_run is not None and self._pbng_run.observe(balance, member)

    @property
    def colors(self) -> int:
        return self.multiresolution.groups[0].batches.colors

    @property
    def needs_monitoring(self) -> bool:
        return self._pbng_run is not None and self._pbng_run.needs_monitoring

    def collect_rejected(self) -> list[int]:
        final = self._pbng_run.collect_rejected()[0] if self._pbng_run else 0
        return [self.multiresolution.collect_rejected() + final]

    def notes(self, member: int = 0) -> list[str]:
        hierarchy = self.multiresolution.layers
        counts = [f"{count:,}" for count in hierarchy.counts]
        notes = [
            f"layers of {', '.join(counts[:-1])} and {counts[-1]} vertices, coupled by "
            f"{len(hierarchy.binding.vertices):,} weak constraints, set up in "
            f"{self.multiresolution.seconds:.2f} s",
            f"{pluralize(self._iteration, 'iteration')} with layers",
        ]
        return notes + (self._pbng_run.notes(member) if self._pbng_run else [])
