"""Hinges with plastic rest angles: creases, pleats and folded paper.

After each step Δt, hinges whose elastic angle θ - θ₀ exceeds a yield angle flow: θ₀ changes by min(Δt ·
creep, 1) (θ - θ₀), like plastic strains [PBCM section 4.2].
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from supple.algebra.angle import angle_of
from supple.kernels import load, where
from supple.materials import Material, Parameter, by_element
from supple.terms.base.constraint import constraint
from supple.terms.base.packed_parameters import load_material, pack_material
from supple.terms.base.term import Incidence
from supple.terms.shells.dihedral import angle_derivatives, angles
from supple.terms.shells.hinge import HingeRows, Hinges, as_constraint, hinge_opening

YIELD = Parameter(
    "yield_angle",
    "elastic angle [rad] at which plastic flow begins",
    symbol="θ_yield",
    at_least=0,
    example=0.2,
)
CREEP = Parameter("creep", "rate of flow", "1/s", "γ", at_least=0, example=10.0)
MAX_ANGLE = Parameter(
    "max_angle", "largest rest angle [rad]", symbol="θ_max", above=0, at_most=math.pi, default=3.0
)
REST = Parameter(
    "rest_angle", "angle [rad] at rest", symbol="θ₀", at_least=-math.pi, at_most=math.pi, default=0.0,
    evolves=True,
)  # fmt: skip


class Crease(Material):
    """Plastic flow of the rest angles of hinges."""

    __slots__ = ()
    thin: ClassVar[bool] = True
    parameters = (YIELD, CREEP, MAX_ANGLE, REST)

    yield_angle: Any
    creep: Any
    max_angle: Any
    rest_angle: Any

    def evolve(self, angle: np.ndarray, dt: float) -> dict[str, np.ndarray]:
        """Rest angles after the flow of a step, for hinges at angles (m,) [rad]; empty if no hinge yields."""
        elastic = wrap_angle(angle - self.rest_angle)
        flows = np.abs(elastic) > self.yield_angle
        if not flows.any():
            return {}
        rest = wrap_angle(self.rest_angle + np.minimum(dt * self.creep * flows, flows) * elastic)
        largest = np.maximum(self.max_angle, np.abs(self.rest_angle))
        return {"rest_angle": np.where(flows, np.clip(rest, -largest, largest), self.rest_angle)}


def wrap_angle(angle: np.ndarray) -> np.ndarray:
    """Reduce angles [rad] to (-π, π] by full turns."""
    return np.arctan2(np.sin(angle), np.cos(angle))


class CreaseRows(HingeRows):
    """Packed data of creases.

    Attributes:
        rest: (rows, 1, lanes) 1 if the visiting corner is an end of the edge, 0 if it is an apex.
        material: A `Crease`; kernels use its rest angle.
    """

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class Creases(Hinges):
    """C = θ - θ₀ with the plastic rest angle θ₀ of a material."""

    material: Any = field(default_factory=lambda: Crease(yield_angle=math.pi, creep=0.0))  # type: ignore[misc]

    kind = CreaseRows
    name: ClassVar[str] = "creases"

    def __post_init__(self) -> None:
        object.__setattr__(self, "material", by_element(self.material, len(self.vertices)))

    def rows(self, incidence: Incidence, start: np.ndarray) -> CreaseRows:
        material = pack_material(self.material, incidence.elements, incidence.dtype)
        return super().rows(incidence, start)._replace(material=material)  # type: ignore[return-value]

    def rest_of(self, element: np.ndarray, slot: np.ndarray) -> np.ndarray:
        return (slot < 2)[:, None].astype(float)

    def deformations(self, displacements: np.ndarray) -> np.ndarray:
        """θ (m,) [rad] at displacements (n, 3) [m] of all vertices."""
        return angles(self.positions[self.vertices] + displacements[self.vertices])

    def derivatives(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return wrap_angle(angles(x) - self.material.rest_angle), *angle_derivatives(x)


@constraint.of(CreaseRows)
def _constraint(rows, row, r):
    """θ - θ₀, reduced to (-π, π]."""
    end = load(rows.rest, row, 0) > 0.5
    hinge = hinge_opening(end, r)
    angle = angle_of(hinge.sine, hinge.cosine)
    elastic_angle = angle - load_material(rows.material, row, angle).rest_angle
    elastic_angle = where(elastic_angle > math.pi, elastic_angle - 2.0 * math.pi, elastic_angle)
    return as_constraint(
        where(elastic_angle < -math.pi, elastic_angle + 2.0 * math.pi, elastic_angle), hinge, end
    )
