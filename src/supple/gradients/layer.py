"""An equilibrium as a function of arrays, with its derivative: what PyTorch and JAX wrap."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from supple.asking import Options, compute_of
from supple.gradients.gradient import gradient_at
from supple.gradients.inputs import Input, changed, inputs_of, pulled
from supple.gradients.polishing import Polished, polished, problem_of
from supple.scene import Scene, SceneFile
from supple.scene.scene import scene_of
from supple.simulate import Result, equilibrium
from supple.solvers import Solver

KEPT = 8
"""Equilibria that are kept for their derivatives."""

OPTIONS = set(Options.__annotations__) | {"stop", "compute", "device", "precision", "threads"}


def apart(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keywords that say what is given in place of what a scene has, and the options of a solve."""
    options = {name: value for name, value in given.items() if name in OPTIONS}
    return {name: value for name, value in given.items() if name not in OPTIONS}, options


class Layer:
    """x(θ): values of some inputs of a scene to the positions (n, 3) [m] of its equilibrium. solver,
    start and options: as for `supple.equilibrium`."""

    def __init__(
        self,
        scene: Scene | SceneFile,
        inputs: Sequence[Input],
        solver: Solver | str | None,
        start: Any,
        options: Mapping[str, Any],
    ) -> None:
        self.scene, self.inputs = scene_of(scene), tuple(inputs)
        self._solver, self._start, self._options = solver, start, dict(options)
        self._compute = compute_of(self._options)  # type: ignore[arg-type]
        self._known: OrderedDict[bytes, tuple[Result, Polished]] = OrderedDict()

    @property
    def vertices(self) -> int:
        return self.scene.bodies[-1].vertices.stop

    def positions(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """(n, 3) [m]."""
        return self.solved(values)[1].problem.positions

    def solved(self, values: Sequence[np.ndarray]) -> tuple[Result, Polished]:
        """The equilibrium for some values, as the solver leaves it, and polished."""
        values = [np.asarray(value, float) for value in values]
        key = b"".join(value.tobytes() for value in values)
        if key not in self._known:
            scene = changed(self.scene, self.inputs, values)
            result = equilibrium(scene, self._solver, start=self._start, **self._options)
            state = polished(problem_of(result, self._compute))
            self._known[key] = result, state
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        return self._known[key]

    def pull(self, values: Sequence[np.ndarray], direct: np.ndarray) -> list[np.ndarray]:
        """dL by every value, from ∂L/∂x (n, 3)."""
        result, state = self.solved(values)
        found = gradient_at(state, result, direct)
        return [
            pulled(found, self.scene, each, np.asarray(value, float))
            for each, value in zip(self.inputs, values, strict=True)
        ]


def layer_of(
    scene: Scene | SceneFile, solver: Any, start: Any, given: Mapping[str, Any]
) -> tuple[Layer, list[Any]]:
    """A layer and the values for it, of whatever library."""
    values, options = apart(given)
    found = inputs_of(scene_of(scene), values)
    return Layer(scene, [each for each, _ in found], solver, start, options), [value for _, value in found]
