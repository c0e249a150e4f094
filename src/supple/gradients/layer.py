"""Equilibrium as a differentiable function of arrays, the basis of the PyTorch and JAX wrappers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from supple.api.batch import solve_conditions
from supple.api.simulate import Result, equilibrium
from supple.gradients.gradient import Gradient, gradient_at
from supple.gradients.inputs import Input, changed, inputs_of, pulled
from supple.gradients.many import attempted
from supple.gradients.polish import Polished, polished_in_time, problem_of
from supple.model.model import Conditions
from supple.scene import Scene, SceneFile, build_model
from supple.scene.scene import scene_of
from supple.scene.variations import conditions_in
from supple.solve.float_range import check_float_range
from supple.solve.options import Options, resolve_backend, resolve_request
from supple.solvers import Solver

KEPT = 8
"""Number of cached equilibria."""

APART = {"rest", "density", "pressures"}
"""Inputs that change masses, rest shape or terms, so that equilibria are solved one by one."""

OPTIONS = set(Options.__annotations__) | {"stop", "backend", "device", "precision", "threads"}


def apart(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split keywords into inputs and solver options."""
    options = {name: value for name, value in given.items() if name in OPTIONS}
    return {name: value for name, value in given.items() if name not in OPTIONS}, options


class Layer:
    """x(θ): maps input values of a scene to equilibrium positions (n, 3) [m].

    Args:
        scene: Scene.
        inputs: Inputs.
        solver, initial, options: As for `supple.equilibrium`.
    """

    def __init__(
        self,
        scene: Scene | SceneFile,
        inputs: Sequence[Input],
        solver: Solver | str | None,
        initial: Any,
        options: Mapping[str, Any],
    ) -> None:
        self.scene, self.inputs = scene_of(scene), tuple(inputs)
        self._solver, self._initial, self._options = solver, initial, dict(options)
        self._backend = resolve_backend(self._options)  # type: ignore[arg-type]
        self._known: OrderedDict[bytes, Any] = OrderedDict()

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return self.scene.bodies[-1].vertices.stop

    def positions(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """(n, 3) equilibrium positions [m]."""
        return self.solved(values)[1].problem.positions

    def solved(self, values: Sequence[np.ndarray]) -> tuple[Result, Polished]:
        """Equilibrium for given values, as returned by the solver, and polished; cached."""
        values = [np.asarray(value, float) for value in values]

        def find() -> tuple[Result, Polished]:
            result = self._equilibrium(changed(self.scene, self.inputs, values))
            return result, polished_in_time(lambda: problem_of(result, self._backend))

        known: tuple[Result, Polished] = self._kept(values, find)
        return known

    def pull(self, values: Sequence[np.ndarray], direct: np.ndarray) -> list[np.ndarray]:
        """Derivatives of L with respect to every value, from ∂L/∂x (n, 3)."""
        result, state = self.solved(values)
        return self._pulled(gradient_at(state, result, direct), [np.asarray(v, float) for v in values])

    def _pulled(self, found: Gradient, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        pairs = zip(self.inputs, values, strict=True)
        return [pulled(found, self.scene, each, value) for each, value in pairs]

    def positions_of_many(self, values: Sequence[np.ndarray]) -> list[np.ndarray | ValueError]:
        """Positions (n, 3) [m], or error, per equilibrium of a batch; values have a leading batch axis."""
        found = self._many(values)
        return [one if isinstance(one, ValueError) else one.positions for one in found]

    def pull_many(
        self, values: Sequence[np.ndarray], direct: np.ndarray
    ) -> list[list[np.ndarray] | ValueError]:
        """Batched derivatives of L with respect to every value; an error per failed equilibrium.

        Args:
            values: Values with a leading batch axis.
            direct: (batch, n, 3) ∂L/∂x.
        """
        found: list[Any] = self._many(values)
        good = [k for k, one in enumerate(found) if not isinstance(one, ValueError)]
        pairs = ((found[k], direct[k]) for k in good)
        for k, one in zip(good, attempted(pairs, self._backend), strict=True):
            own = [np.asarray(value[k], float) for value in values]
            found[k] = one if isinstance(one, ValueError) else self._pulled(one, own)
        return found

    def _many(self, values: Sequence[np.ndarray]) -> list[Any]:
        """Polished result of each equilibrium, or its error."""
        values = [np.asarray(value, float) for value in values]
        found: list[Any] = self._kept(values, lambda: self._find(values))
        return list(found)

    def _find(self, values: Sequence[np.ndarray]) -> list[Any]:
        found: list[Any] = []
        for k in range(len(values[0])):
            try:
                found.append(changed(self.scene, self.inputs, [value[k] for value in values]))
            except ValueError as error:
                found.append(error)
        good = [k for k, one in enumerate(found) if isinstance(one, Scene)]
        results = self._equilibria([found[k] for k in good])
        still = ((result, np.zeros_like(result.positions)) for result in results)
        for k, result, one in zip(good, results, attempted(still, self._backend), strict=True):
            found[k] = one if isinstance(one, ValueError) else replace(result, positions=one.positions)
        return found

    def _equilibria(self, scenes: list[Scene]) -> list[Result]:
        """Solve scenes that differ from the layer's in values; batched if the inputs permit it."""
        if {each.kind for each in self.inputs} & APART:
            return [self._equilibrium(scene) for scene in scenes]
        asked = resolve_request(self.scene, self._solver, self._options, always_tolerance=True)  # type: ignore[arg-type]
        model = build_model(self.scene, quasistatic=True)
        check_float_range(model, asked.backend.precision)
        initial = asked.initial(self._initial, model)

        def under(scene: Scene) -> Conditions:
            gravity = model.gravity._replace(vector=np.array(scene.gravity, float))
            return replace(conditions_in(scene), initial=initial, gravity=gravity)

        return list(solve_conditions(model, map(under, scenes), asked, None))

    def _equilibrium(self, scene: Scene) -> Result:
        return equilibrium(scene, solver=self._solver, initial=self._initial, **self._options)

    def _kept(self, values: Sequence[np.ndarray], find: Callable[[], Any]) -> Any:
        """Return the cached result for some values, or compute it."""
        key = repr([value.shape for value in values]).encode() + b"".join(v.tobytes() for v in values)
        if key not in self._known:
            self._known[key] = find()
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        return self._known[key]


def layer_of(
    scene: Scene | SceneFile, solver: Any, initial: Any, given: Mapping[str, Any]
) -> tuple[Layer, list[Any]]:
    """Create a layer, and the list of its input values from any array library."""
    values, options = apart(given)
    found = inputs_of(scene_of(scene), values)
    return Layer(scene, [each for each, _ in found], solver, initial, options), [value for _, value in found]
