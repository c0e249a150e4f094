"""Equilibrium as a differentiable function of arrays, the basis of the PyTorch and JAX wrappers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from supple.api.equilibria import solve_conditions
from supple.api.simulate import Result, equilibrium
from supple.gradients.batched_gradients import try_gradients
from supple.gradients.gradient import Gradient, gradient_at
from supple.gradients.inputs import Input, input_derivative, parse_inputs, replace_inputs
from supple.gradients.polish import PolishedState, make_problem_at, polish_timed
from supple.model.model import Conditions
from supple.scene import Scene, SceneFile, build_model
from supple.scene.scene import scene_of
from supple.scene.variations import conditions_in
from supple.solve.call_options import Options, resolve_backend, resolve_request
from supple.solve.float_range import check_float_range
from supple.solvers import Solver

MAX_CACHED = 8
"""Number of cached equilibria."""

SEQUENTIAL_INPUTS = {"rest", "density", "pressures"}
"""Inputs that change masses, rest shape or terms, so that equilibria are solved one by one."""

OPTIONS = set(Options.__annotations__) | {"stop", "backend", "device", "precision", "threads"}


def split_keywords(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
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
        self._cache: OrderedDict[bytes, Any] = OrderedDict()

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return self.scene.bodies[-1].vertices.stop

    def positions(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """(n, 3) equilibrium positions [m]."""
        return self.solve(values)[1].problem.positions

    def solve(self, values: Sequence[np.ndarray]) -> tuple[Result, PolishedState]:
        """Equilibrium for given values, as returned by the solver, and polished; cached."""
        values = [np.asarray(value, float) for value in values]

        def compute() -> tuple[Result, PolishedState]:
            result = self._equilibrium(replace_inputs(self.scene, self.inputs, values))
            return result, polish_timed(lambda: make_problem_at(result, self._backend))

        cached: tuple[Result, PolishedState] = self._get_cached(values, compute)
        return cached

    def pullback(self, values: Sequence[np.ndarray], direct: np.ndarray) -> list[np.ndarray]:
        """Derivatives of L with respect to every value, from ∂L/∂x (n, 3)."""
        result, state = self.solve(values)
        return self._input_derivatives(
            gradient_at(state, result, direct), [np.asarray(v, float) for v in values]
        )

    def _input_derivatives(self, gradient: Gradient, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        pairs = zip(self.inputs, values, strict=True)
        return [input_derivative(gradient, self.scene, each, value) for each, value in pairs]

    def positions_of_batch(self, values: Sequence[np.ndarray]) -> list[np.ndarray | ValueError]:
        """Positions (n, 3) [m], or error, per equilibrium of a batch; values have a leading batch axis."""
        results = self._solve_batch(values)
        return [one if isinstance(one, ValueError) else one.positions for one in results]

    def pullback_batch(
        self, values: Sequence[np.ndarray], direct: np.ndarray
    ) -> list[list[np.ndarray] | ValueError]:
        """Batched derivatives of L with respect to every value; an error per failed equilibrium.

        Args:
            values: Values with a leading batch axis.
            direct: (batch, n, 3) ∂L/∂x.
        """
        results: list[Any] = self._solve_batch(values)
        valid = [k for k, one in enumerate(results) if not isinstance(one, ValueError)]
        pairs = ((results[k], direct[k]) for k in valid)
        for k, one in zip(valid, try_gradients(pairs, self._backend), strict=True):
            own = [np.asarray(value[k], float) for value in values]
            results[k] = one if isinstance(one, ValueError) else self._input_derivatives(one, own)
        return results

    def _solve_batch(self, values: Sequence[np.ndarray]) -> list[Any]:
        """Polished result of each equilibrium, or its error."""
        values = [np.asarray(value, float) for value in values]
        results: list[Any] = self._get_cached(values, lambda: self._compute_batch(values))
        return list(results)

    def _compute_batch(self, values: Sequence[np.ndarray]) -> list[Any]:
        entries: list[Any] = []
        for k in range(len(values[0])):
            try:
                entries.append(replace_inputs(self.scene, self.inputs, [value[k] for value in values]))
            except ValueError as error:
                entries.append(error)
        valid = [k for k, one in enumerate(entries) if isinstance(one, Scene)]
        results = self._equilibria([entries[k] for k in valid])
        unloaded = ((result, np.zeros_like(result.positions)) for result in results)
        for k, result, one in zip(valid, results, try_gradients(unloaded, self._backend), strict=True):
            entries[k] = one if isinstance(one, ValueError) else replace(result, positions=one.positions)
        return entries

    def _equilibria(self, scenes: list[Scene]) -> list[Result]:
        """Solve scenes that differ from the layer's in values; batched if the inputs permit it."""
        if {each.kind for each in self.inputs} & SEQUENTIAL_INPUTS:
            return [self._equilibrium(scene) for scene in scenes]
        request = resolve_request(self.scene, self._solver, self._options, always_tolerance=True)  # type: ignore[arg-type]
        model = build_model(self.scene, quasistatic=True)
        check_float_range(model, request.backend.precision)
        initial = request.initial(self._initial, model)

        def make_conditions(scene: Scene) -> Conditions:
            gravity = model.gravity._replace(vector=np.array(scene.gravity, float))
            return replace(conditions_in(scene), initial=initial, gravity=gravity)

        return list(solve_conditions(model, map(make_conditions, scenes), request, None))

    def _equilibrium(self, scene: Scene) -> Result:
        return equilibrium(scene, solver=self._solver, initial=self._initial, **self._options)

    def _get_cached(self, values: Sequence[np.ndarray], compute: Callable[[], Any]) -> Any:
        """Return the cached result for some values, or compute it."""
        key = repr([value.shape for value in values]).encode() + b"".join(v.tobytes() for v in values)
        if key not in self._cache:
            self._cache[key] = compute()
            if len(self._cache) > MAX_CACHED:
                self._cache.popitem(last=False)
        return self._cache[key]


def make_layer(
    scene: Scene | SceneFile, solver: Any, initial: Any, given: Mapping[str, Any]
) -> tuple[Layer, list[Any]]:
    """Create a layer, and the list of its input values from any array library."""
    values, options = split_keywords(given)
    inputs = parse_inputs(scene_of(scene), values)
    return Layer(scene, [each for each, _ in inputs], solver, initial, options), [
        value for _, value in inputs
    ]
