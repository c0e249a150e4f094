"""Bending models of sheets: user options, and the energy terms they create for a triangle mesh."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from supple.materials import Parameter
from supple.materials.moduli import YOUNG
from supple.support.arguments import check_flag, format_value, to_floats
from supple.support.keywords import suggest_keywords
from supple.support.text import pluralize
from supple.terms.base.term import Term
from supple.terms.shells.crease import Crease, Creases
from supple.terms.shells.dihedral import angles
from supple.terms.shells.hinge import Hinges
from supple.terms.shells.isometric_bending import IsometricHinges

RIGIDITY = Parameter(
    "rigidity", "bending rigidity", "N m", "B", at_least=0, example=1e-4, slider=(1e-7, 1e-2)
)
POISSON = Parameter("poisson", "Poisson's ratio", symbol="ν", above=-1, at_most=0.5, example=0.3)
THICKNESS = Parameter("thickness", "thickness", "m", "h", above=0, example=1e-3)


def plate_stiffness(young: float, poisson: float, thickness: float) -> float:
    """Bending rigidity of a plate, B = E h³ / (12 (1 - ν²)).

    Args:
        young: Young's modulus E [Pa].
        poisson: Poisson's ratio ν.
        thickness: Thickness h [m].

    Returns:
        B [N m].
    """
    E, nu, h = YOUNG.check(young), POISSON.check(poisson), THICKNESS.check(thickness)
    return float(E * h**3 / (12 * (1 - nu**2)))


@dataclass(frozen=True)
class Bending(ABC):
    """Base class of bending models.

    Attributes:
        rigidity: Bending rigidity B [N m], moment per width and curvature; a number, or (m,) per triangle. A
            hinge uses the mean of its two triangles.
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]] = (RIGIDITY,)

    rigidity: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "rigidity", RIGIDITY.check(self.rigidity))

    @classmethod
    def from_young(cls, young: float, poisson: float, thickness: float, **options: Any) -> Self:
        """Create the bending model of a plate, with B = E h³ / (12 (1 - ν²)).

        Args:
            young: Young's modulus E [Pa].
            poisson: Poisson's ratio ν.
            thickness: Thickness h [m].
            **options: Further options of the model.

        Returns:
            The bending model.
        """
        return cls(plate_stiffness(young, poisson, thickness), **options)

    @abstractmethod
    def term(self, hinges: HingesOfMesh, positions: np.ndarray) -> Term:
        """Create the energy term of hinges.

        Args:
            hinges: Interior edges of a triangle mesh with their rest geometry.
            positions: (n, 3) positions at zero displacement [m].

        Returns:
            The energy term.

        Raises:
            ValueError: The rest geometry does not suit the model, or `rest` has the wrong number of angles.
        """


@suggest_keywords
@dataclass(frozen=True, eq=False)
class HingeBending(Bending):
    """½ B Σ w (θ - θ₀)² over the edges, with the dihedral angle θ: discrete shells.

    Attributes:
        rigidity: Bending rigidity B [N m], a number or (m,) per triangle.
        weighted: True for w = |e|²/(A + A'), with the rest length |e| of the edge and the rest areas of its
            triangles; B is then the rigidity of plate theory on equilateral meshes. False for w = 1; B is
            then k_b of [PBNG eq. 35].
        rest: Rest angles θ₀: "shape" for those of the rest shape, "flat" for 0, or an array with an angle per
            hinge [rad], in the order of `hinges_of`.

    Raises:
        ValueError: An option is out of range.
    """

    name: ClassVar[str] = "hinge"

    weighted: bool = True
    rest: Literal["shape", "flat"] | np.ndarray = "shape"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("weighted", self.weighted)
        if isinstance(self.rest, str):
            if self.rest not in ("shape", "flat"):
                raise ValueError(f"rest must be 'shape', 'flat' or an array of angles, got {self.rest!r}")
            return
        angle = np.array(to_floats(self.rest))
        if angle.ndim != 1 or not np.all(np.abs(angle) <= np.pi):
            raise ValueError(f"rest angles must be numbers (h,) from -π to π, got {format_value(self.rest)}")
        object.__setattr__(self, "rest", angle)

    def term(self, hinges: HingesOfMesh, positions: np.ndarray) -> Term:
        k = hinges.mean(self.rigidity)
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


@suggest_keywords
@dataclass(frozen=True, eq=False)
class CreasedBending(HingeBending):
    """Hinge bending with plastic rest angles.

    After each step Δt, hinges with |θ - θ₀| above yield_angle flow: θ₀ changes by min(Δt · creep, 1) (θ - θ₀)
    up to max_angle. The flow takes time: an equilibrium keeps the initial rest angles.

    Attributes:
        rigidity: Bending rigidity B [N m], a number or (m,) per triangle.
        weighted: True for the weights w = |e|²/(A + A') of `HingeBending`, False for w = 1.
        rest: Initial rest angles θ₀: "shape", "flat", or (h,) angles per hinge [rad], as for `HingeBending`.
        yield_angle: Elastic angle above which a hinge flows [rad].
        creep: Flow rate [1/s].
        max_angle: Largest rest angle [rad].

    Raises:
        ValueError: An option is out of range.
    """

    name: ClassVar[str] = "creased"
    parameters: ClassVar[tuple[Parameter, ...]] = (RIGIDITY, *Crease.parameters[:3])

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


@suggest_keywords
@dataclass(frozen=True, eq=False)
class IsometricBending(Bending):
    """½ B/(A + A') |Σ Kᵢ xᵢ|² over the edges, quadratic in positions.

    For sheets that are flat at rest and nearly inextensible [PBCM section 4.3, with the factor B/3].

    Attributes:
        rigidity: Bending rigidity B [N m], a number or (m,) per triangle.

    Raises:
        ValueError: An option is out of range.
    """

    name: ClassVar[str] = "isometric"

    def term(self, hinges: HingesOfMesh, positions: np.ndarray) -> Term:
        bent = np.abs(hinges.angles)
        if len(bent) and bent.max() > MAX_FLAT_ANGLE:
            raise ValueError(
                "isometric bending needs sheets that are flat at rest, and triangles of this one meet at "
                f"angles of up to {np.degrees(bent.max()):.3g} degrees; use HingeBending"
            )
        return IsometricHinges.of(hinges.vertices, hinges.mean(self.rigidity), hinges.corners, positions)


MAX_FLAT_ANGLE = 1e-4
"""Largest dihedral angle of a flat sheet [rad], an allowance for the rounding of positions in files."""

BENDINGS: dict[str, type[Bending]] = {
    kind.name: kind for kind in (HingeBending, CreasedBending, IsometricBending)
}
"""Bending models by their names in scene files."""


def bending_name(bending: Bending) -> str:
    """Return the name of a bending model in scene files."""
    return bending.name


@dataclass(frozen=True)
class HingesOfMesh:
    """Interior edges of a triangle mesh.

    Attributes:
        vertices: (h, 4) corners (a, b, o, p), see `dihedral`.
        triangles: (h, 2) triangles a b o and b a p.
        corners: (h, 4, 3) rest positions of the corners [m].
    """

    vertices: np.ndarray
    triangles: np.ndarray
    corners: np.ndarray

    @property
    def angles(self) -> np.ndarray:
        """θ₀ (h,) of the rest shape [rad]."""
        return angles(self.corners)

    @property
    def weights(self) -> np.ndarray:
        """Hinge weights |e|²/(A + A') (h,)."""
        a, b, o, p = np.moveaxis(self.corners, 1, 0)
        twice = sum(np.linalg.norm(np.cross(b - a, apex - a), axis=1) for apex in (o, p))
        return 2 * ((b - a) ** 2).sum(axis=1) / twice

    def mean(self, values: Any) -> np.ndarray:
        """(h,) hinge values of a uniform number, or means of values per triangle."""
        values = np.asarray(values, float)
        if values.ndim == 0:
            return np.full(len(self.vertices), float(values))
        return values[self.triangles].mean(axis=1)


def hinges_of(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the interior edges of a triangle mesh.

    Args:
        triangles: (m, 3) vertices.

    Returns:
        (h, 4) corners (a, b, o, p), in the order of the first triangles, and (h, 2) triangles: the first has
        the edge from a to b and the apex o, the second the edge from b to a and the apex p.

    Raises:
        ValueError: An edge has more than two triangles, or two of opposite orientation.
    """
    start, end, apex = triangles.ravel(), triangles[:, [1, 2, 0]].ravel(), triangles[:, [2, 0, 1]].ravel()
    owner = np.repeat(np.arange(len(triangles)), 3)
    low, high = np.minimum(start, end).astype(np.int64), np.maximum(start, end)
    key = low * (int(triangles.max(initial=0)) + 1) + high
    order = np.argsort(key, kind="stable")
    _, first, count = np.unique(key[order], return_index=True, return_counts=True)
    _refuse(count > 2, order[first], start, end, "more than two triangles: split the surface there")
    one, other = (order[first[count == 2] + k] for k in (0, 1))
    _refuse(
        start[one] == start[other],
        one,
        start,
        end,
        "two triangles of opposite orientation: reverse the vertex order of one",
    )
    by_triangle = np.argsort(one, kind="stable")
    one, other = one[by_triangle], other[by_triangle]
    vertices = np.stack([start[one], end[one], apex[one], apex[other]], axis=1)
    return vertices, np.stack([owner[one], owner[other]], axis=1)


def _refuse(wrong: np.ndarray, halves: np.ndarray, start: np.ndarray, end: np.ndarray, what: str) -> None:
    if wrong.any():
        k = halves[np.flatnonzero(wrong)[0]]
        raise ValueError(
            f"some edges of the cloth belong to {what} ({pluralize(int(wrong.sum()), 'edge')}), for example "
            f"the one between vertices {start[k]} and {end[k]}"
        )


def bending_terms(
    bending: Bending | None,
    rest: np.ndarray,
    triangles: np.ndarray,
    positions: np.ndarray,
    first: int = 0,
) -> tuple[Term, ...]:
    """Create the bending term of a sheet; empty for None.

    Args:
        bending: Bending model.
        rest: (k, 3) stress-free positions of the sheet's vertices [m].
        triangles: (m, 3) triangles, as numbers of these vertices.
        positions: (n, 3) positions of all vertices of the model at zero displacement [m].
        first: Number of the sheet's first vertex in the model.
    """
    if bending is None:
        return ()
    vertices, owners = hinges_of(np.asarray(triangles))
    if not len(vertices):
        return ()
    return (bending.term(HingesOfMesh(vertices + first, owners, rest[vertices]), positions),)
