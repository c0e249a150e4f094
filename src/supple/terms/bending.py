"""How sheets resist bending: what a user gives, and the terms that it makes of a triangle mesh."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from supple.checks import flag, floats, shown
from supple.materials import Parameter
from supple.materials.isotropic import YOUNG
from supple.terms.crease import Crease, Creases
from supple.terms.dihedral import angles
from supple.terms.hinge import Hinges
from supple.terms.isometric import IsometricHinges
from supple.terms.term import Term

STIFFNESS = Parameter(
    "stiffness", "bending stiffness", "N m", "B", at_least=0, example=1e-4, slider=(1e-7, 1e-2)
)
POISSON = Parameter("poisson", "Poisson's ratio", symbol="ν", above=-1, at_most=0.5, example=0.3)
THICKNESS = Parameter("thickness", "thickness", "m", "h", above=0, example=1e-3)


def plate_stiffness(young: float, poisson: float, thickness: float) -> float:
    """B = E h³ / (12 (1 - ν²)) [N m] of a plate of thickness h [m]."""
    E, nu, h = YOUNG.checked(young), POISSON.checked(poisson), THICKNESS.checked(thickness)
    return float(E * h**3 / (12 * (1 - nu**2)))


@dataclass(frozen=True)
class Bending(ABC):
    """How a sheet resists bending.

    stiffness: B [N m], a moment per width for a curvature: a number, or an array with one for each triangle,
    of which a hinge has the mean of its two.
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]] = (STIFFNESS,)

    stiffness: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "stiffness", STIFFNESS.checked(self.stiffness))

    @classmethod
    def from_young(cls, young: float, poisson: float, thickness: float, **options: Any) -> Self:
        """Of a plate of Young's modulus E [Pa], Poisson's ratio ν and thickness h [m]:
        B = E h³ / (12 (1 - ν²))."""
        return cls(plate_stiffness(young, poisson, thickness), **options)

    @abstractmethod
    def term(self, hinges: HingesOfMesh, positions: np.ndarray) -> Term:
        """What the hinges of a mesh add to a model with vertices at positions (n, 3) [m]."""


@dataclass(frozen=True, eq=False)
class HingeBending(Bending):
    """½ B Σ w (θ - θ₀)² over the edges, θ the angle between the triangles: the discrete shell.

    weighted: w = |e|²/(A + A') from the edge and the areas of its triangles at rest, which makes B that of
    plate theory on equilateral meshes; False is w = 1, and B is then k_b of [PBNG eq. 35].
    rest: "shape", where the angles θ₀ are those of the rest shape; "flat", where they are 0; or an array with
    an angle [rad] for each hinge, as `hinges_of` has them.
    """

    name: ClassVar[str] = "hinge"

    weighted: bool = True
    rest: Literal["shape", "flat"] | np.ndarray = "shape"

    def __post_init__(self) -> None:
        super().__post_init__()
        flag("weighted", self.weighted)
        if isinstance(self.rest, str):
            if self.rest not in ("shape", "flat"):
                raise ValueError(f"rest must be 'shape', 'flat' or an array of angles, got {self.rest!r}")
            return
        angle = np.array(floats(self.rest))
        if angle.ndim != 1 or not np.all(np.abs(angle) <= np.pi):
            raise ValueError(f"rest angles must be numbers (h,) from -π to π, got {shown(self.rest)}")
        object.__setattr__(self, "rest", angle)

    def term(self, hinges: HingesOfMesh, positions: np.ndarray) -> Term:
        k = hinges.mean(self.stiffness)
        return Hinges.of(
            hinges.vertices, k * hinges.weights if self.weighted else k, self._angles(hinges), positions
        )

    def _angles(self, hinges: HingesOfMesh) -> np.ndarray:
        if isinstance(self.rest, str):
            return hinges.angles if self.rest == "shape" else np.zeros(len(hinges.vertices))
        if len(self.rest) != len(hinges.vertices):
            raise ValueError(
                f"rest needs one angle for each of the {len(hinges.vertices)} edges between two triangles, "
                f"got {len(self.rest)}"
            )
        return self.rest


@dataclass(frozen=True, eq=False)
class CreasedBending(HingeBending):
    """Hinges that keep part of their folds: after each step of Δt, where θ - θ₀ is larger than yield_angle
    [rad], Δt · creep of it, at most all, goes into θ₀, which stays below max_angle [rad]. creep [1/s]. Since
    it takes time, equilibria have the rest angles of their start."""

    name: ClassVar[str] = "creased"
    parameters: ClassVar[tuple[Parameter, ...]] = (STIFFNESS, *Crease.parameters[:3])

    yield_angle: float = 0.2
    creep: float = 10.0
    max_angle: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._crease(0.0)

    def _crease(self, rest: Any) -> Crease:
        given = {"yield_angle": self.yield_angle, "creep": self.creep, "max_angle": self.max_angle}
        return Crease(**given, rest_angle=rest)

    def term(self, hinges: HingesOfMesh, positions: np.ndarray) -> Term:
        plain, rest = super().term(hinges, positions), self._angles(hinges)
        assert isinstance(plain, Hinges)
        return Creases(plain.vertices, plain.stiffness, plain.rest, positions, material=self._crease(rest))


@dataclass(frozen=True, eq=False)
class IsometricBending(Bending):
    """½ B/(A + A') |Σ Kᵢ xᵢ|² over the edges, quadratic in positions: for sheets that are flat at rest and
    hardly stretch [PBCM section 4.3, with B/3 in front]."""

    name: ClassVar[str] = "isometric"

    def term(self, hinges: HingesOfMesh, positions: np.ndarray) -> Term:
        bent = np.abs(hinges.angles)
        if len(bent) and bent.max() > FLAT:
            raise ValueError(
                f"isometric bending is for sheets that are flat at rest, and the triangles of this one meet "
                f"at angles of up to {np.degrees(bent.max()):.3g} degrees; take HingeBending"
            )
        return IsometricHinges.of(hinges.vertices, hinges.mean(self.stiffness), hinges.corners, positions)


FLAT = 1e-4
"""Angles [rad] below which a sheet is flat: rounding of positions in files."""

BENDINGS: dict[str, type[Bending]] = {
    kind.name: kind for kind in (HingeBending, CreasedBending, IsometricBending)
}
"""By their names in scene files."""


def bending_name(bending: Bending) -> str:
    """The name in scene files."""
    return bending.name


@dataclass(frozen=True)
class HingesOfMesh:
    """The edges between two triangles: vertices (h, 4) as (a, b, o, p) of `dihedral`; triangles (h, 2): of a
    b o and of b a p; corners (h, 4, 3): where they are at rest [m]."""

    vertices: np.ndarray
    triangles: np.ndarray
    corners: np.ndarray

    @property
    def angles(self) -> np.ndarray:
        """θ₀ (h,) of the rest shape."""
        return angles(self.corners)

    @property
    def weights(self) -> np.ndarray:
        """|e|²/(A + A') (h,)."""
        a, b, o, p = np.moveaxis(self.corners, 1, 0)
        twice = sum(np.linalg.norm(np.cross(b - a, apex - a), axis=1) for apex in (o, p))
        return 2 * ((b - a) ** 2).sum(axis=1) / twice

    def mean(self, values: Any) -> np.ndarray:
        """(h,) of a number, or of one for each triangle."""
        values = np.asarray(values, float)
        if values.ndim == 0:
            return np.full(len(self.vertices), float(values))
        return values[self.triangles].mean(axis=1)


def hinges_of(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(h, 4) vertices (a, b, o, p) of the edges between two triangles, in the order of their first triangles,
    and (h, 2) the triangles: one has the edge from a to b and the apex o, the other from b to a and p."""
    start, end, apex = triangles.ravel(), triangles[:, [1, 2, 0]].ravel(), triangles[:, [2, 0, 1]].ravel()
    owner = np.repeat(np.arange(len(triangles)), 3)
    low, high = np.minimum(start, end).astype(np.int64), np.maximum(start, end)
    key = low * (int(triangles.max(initial=0)) + 1) + high
    order = np.argsort(key, kind="stable")
    _, first, count = np.unique(key[order], return_index=True, return_counts=True)
    _refuse(count > 2, order[first], start, end, "more than two triangles: split the surface there")
    one, other = (order[first[count == 2] + k] for k in (0, 1))
    _refuse(start[one] == start[other], one, start, end, "two triangles that face opposite ways: turn one")
    by_triangle = np.argsort(one, kind="stable")
    one, other = one[by_triangle], other[by_triangle]
    vertices = np.stack([start[one], end[one], apex[one], apex[other]], axis=1)
    return vertices, np.stack([owner[one], owner[other]], axis=1)


def _refuse(wrong: np.ndarray, halves: np.ndarray, start: np.ndarray, end: np.ndarray, what: str) -> None:
    if wrong.any():
        k = halves[np.flatnonzero(wrong)[0]]
        raise ValueError(
            f"{int(wrong.sum())} edges of the cloth belong to {what}, for example that between vertices "
            f"{start[k]} and {end[k]}"
        )


def bending_terms(
    bending: Bending | None,
    rest: np.ndarray,
    triangles: np.ndarray,
    positions: np.ndarray,
    first: int = 0,
) -> tuple[Term, ...]:
    """What a sheet's bending adds to a model, nothing for None.

    rest (k, 3) [m]: its vertices where it is unstrained; triangles (m, 3) of these; positions (n, 3) [m]: all
    vertices of the model at zero displacement, of which the sheet's begin with number `first`.
    """
    if bending is None:
        return ()
    vertices, owners = hinges_of(np.asarray(triangles))
    if not len(vertices):
        return ()
    return (bending.term(HingesOfMesh(vertices + first, owners, rest[vertices]), positions),)
