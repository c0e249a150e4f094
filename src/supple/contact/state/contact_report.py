"""Report of contact after a solve: between bodies, with obstacles, and of obstacles in faces."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from supple.support.text import pluralize

Force = tuple[float, float, float]

MIN_REPORTED_SHARE = 1e-3
"""Smallest effect of the thickness on the contact force that a printed report names."""


@dataclass(frozen=True)
class BodyContactReport:
    """Contact between bodies, including self-contact, of weak (penalty) or barrier contact.

    The thickness h of contact affects forces in two ways: gaps remain open, and surfaces yield. In a linear
    system with strain energy U under prescribed displacements, `gap_share` is the fraction of the contact
    force that closed surfaces would not have. `approach_share` is the relative deficit of the force against
    rigid surfaces of thickness h/2 each. Under prescribed loads, forces are correct, and only positions are
    offset.

    Attributes:
        count: Number of contacts; with a barrier, of those closer than the thickness.
        max_penetration: Largest penetration depth [m], 0 without penetration, always 0 with a barrier.
        min_gap: Smallest gap of barrier contact [m], None without proximity pairs. None for weak contact.
        forces: Contact force on each body, by name [N]; their sum is 0.
        complementarity: Σ λ |g| [J], normal forces times gaps.
        edge_intersections: Number of edge-triangle intersections that involve a shell, where depth is
            undefined. None for barrier contact, which excludes intersections.
        pin_lag: Largest lag of prescribed vertices behind their motion [m]; None for weak contact.
        mean_gap: Σ λ g / Σ λ, the remaining gap [m].
        mean_approach: Σ λ (h - g) / Σ λ, the approach within the thickness [m].
        gap_share: Σ λ g / 2U, at most 1. None for motions, and where loads carry the contact instead of
            prescribed displacements.
        approach_share: Σ λ (h - g) / (2U + Σ λ (h - g)), None in the same cases.
    """

    count: int
    max_penetration: float
    min_gap: float | None
    forces: dict[str, Force]
    complementarity: float
    edge_intersections: int | None = None
    pin_lag: float | None = None
    mean_gap: float = 0.0
    mean_approach: float = 0.0
    gap_share: float | None = None
    approach_share: float | None = None

    @property
    def is_intersecting(self) -> bool:
        """True if surfaces penetrate or intersect each other."""
        return self.max_penetration > 0 or bool(self.edge_intersections)

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values for JSON."""
        return asdict(self) | {"is_intersecting": self.is_intersecting}

    def __str__(self) -> str:
        parts = [f"{pluralize(self.count, 'contact')} between bodies"]
        if self.min_gap is not None:
            parts.append(f"smallest gap {self.min_gap:.2e} m")
        if self.edge_intersections is not None:
            parts.append(f"deepest {self.max_penetration:.2e} m")
        if self.edge_intersections:
            parts.append(f"{pluralize(self.edge_intersections, 'edge')} through cloth")
        if self.count:
            parts.append(f"forces times gaps {self.complementarity:.1e} J")
        return "; ".join([", ".join(parts), *self._thickness_effects()])

    def _thickness_effects(self) -> list[str]:
        """Sentences about the effect of the thickness on the contact force, in percent."""
        sentences = []
        if self.gap_share is not None and self.gap_share >= MIN_REPORTED_SHARE:
            sentences.append(
                f"{100 * self.gap_share:.2g} % of the contact force comes from gaps that the thickness "
                f"keeps open (mean {self.mean_gap:.2e} m)"
            )
        if self.approach_share is not None and self.approach_share >= MIN_REPORTED_SHARE:
            sentences.append(
                f"the contact force is {100 * self.approach_share:.2g} % smaller because surfaces "
                f"approach each other within the thickness (mean {self.mean_approach:.2e} m)"
            )
        return sentences


@dataclass(frozen=True)
class ObstacleContact:
    """Contact of all bodies with one obstacle.

    A vertex counts for its nearest obstacle. Pinned vertices are ignored.

    Attributes:
        name: Name of the obstacle.
        count: Number of vertices pushed, plus contact points on faces.
        force: Force of all bodies on the obstacle [N].
        max_penetration: Depth of the deepest vertex inside [m], 0 if none is inside.
        min_gap: Gap of the closest vertex [m], 0 if one is inside; None if no vertex counts for the obstacle.
    """

    name: str
    count: int
    force: Force
    max_penetration: float
    min_gap: float | None


@dataclass(frozen=True)
class VertexPassage:
    """Vertices of a body that have passed through an obstacle.

    Attributes:
        obstacle: Name of the obstacle.
        body: Name of the body.
        count: Number of vertices.
    """

    obstacle: str
    body: str
    count: int

    @property
    def sentence(self) -> str:
        """Sentence for the user, with remedies."""
        return (
            f"{pluralize(self.count, 'vertex', 'vertices')} of {self.body!r} passed through obstacle "
            f"{self.obstacle!r}, because another contact or a constraint pushed them; use shorter steps, "
            "a thicker obstacle, or contact = 'barrier'"
        )


@dataclass(frozen=True)
class ObstacleContactReport:
    """Contact of all bodies with all obstacles.

    Attributes:
        each: Contact with each obstacle.
        forces: Force of all obstacles on each body, by name [N].
        complementarity: Σ λ |g| [J], forces times gaps, which vanishes if no force acts at a distance.
        passages: Vertices that have passed through obstacles since the last frame or, in an equilibrium,
            since the start of the solve.
    """

    each: tuple[ObstacleContact, ...]
    forces: dict[str, Force]
    complementarity: float
    passages: tuple[VertexPassage, ...] = ()

    @property
    def is_intersecting(self) -> bool:
        """True if vertices have passed through an obstacle."""
        return bool(self.passages)

    @property
    def sentences(self) -> list[str]:
        """One sentence per body and obstacle that it has passed through."""
        return [passage.sentence for passage in self.passages]

    @property
    def count(self) -> int:
        """Number of contacts with all obstacles."""
        return sum(contact.count for contact in self.each)

    @property
    def max_penetration(self) -> float:
        """Depth of the deepest vertex inside any obstacle [m], 0 if none is inside."""
        return max(contact.max_penetration for contact in self.each)

    @property
    def min_gap(self) -> float | None:
        """Smallest gap to any obstacle [m], None without free vertices."""
        return min((c.min_gap for c in self.each if c.min_gap is not None), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values for JSON."""
        totals = {"count": self.count, "max_penetration": self.max_penetration, "min_gap": self.min_gap}
        return totals | {"is_intersecting": self.is_intersecting} | asdict(self)

    def __str__(self) -> str:
        return (
            f"{pluralize(self.count, 'contact')} with {pluralize(len(self.each), 'obstacle')}, deepest "
            f"{self.max_penetration:.2e} m, forces times gaps {self.complementarity:.1e} J"
        )


@dataclass(frozen=True)
class IntersectedFace:
    """Surface triangle that an obstacle has passed.

    Attributes:
        body: Name of the body.
        penetration: Depth of the face inside the obstacle [m].
        edge: Longest edge of the face [m].
        resolving_edge: Edge length at which vertices would resolve the obstacle [m].
    """

    body: str
    penetration: float
    edge: float
    resolving_edge: float

    def sentence(self, obstacle: str) -> str:
        """Sentence for the user, with remedies."""
        return (
            f"obstacle {obstacle!r} is {self.penetration:.2g} m deep in a face of {self.body!r} with "
            f"edges of {self.edge:.2g} m; use edges below {self.resolving_edge:.2g} m, or replace the "
            "obstacle by a body with contact = 'barrier'"
        )


@dataclass(frozen=True)
class PinnedOverlap:
    """Pinned part of a body that a rigid body overlaps.

    Attributes:
        body: Name of the body.
        penetration: Depth of the overlap [m].
    """

    body: str
    penetration: float

    def sentence(self, obstacle: str) -> str:
        """Sentence for the user, with remedies."""
        return (
            f"the rigid body {obstacle!r} is {self.penetration:.2g} m deep in a pinned part of "
            f"{self.body!r}, and pinned vertices do not push rigid bodies; pin only vertices out of its "
            "reach, or add an obstacle there"
        )


@dataclass(frozen=True)
class FacePenetration:
    """Penetration of faces by one obstacle, beyond that of their vertices.

    Attributes:
        name: Name of the obstacle.
        count: Number of faces with the obstacle inside, and of pinned parts that it overlaps.
        max_penetration: Depth of the deepest face inside [m], 0 if none. Depths below about a hundredth of an
            edge are ignored. It is the depth at the middle of faces with a vertex close to the obstacle, and
            at the deepest point of faces that the obstacle may have passed.
        intersection: Deepest face that the obstacle has passed, or pinned part of a body that a rigid body
            overlaps; None if there is neither.
    """

    name: str
    count: int
    max_penetration: float
    intersection: IntersectedFace | PinnedOverlap | None = None


@dataclass(frozen=True)
class FacePenetrationReport:
    """Faces of bodies that are deeper inside obstacles than their vertices.

    Attributes:
        each: Entries of the obstacles that penetrate faces or overlap pinned parts.
    """

    each: tuple[FacePenetration, ...] = ()

    @property
    def count(self) -> int:
        """Number of penetrated faces and overlapped pinned parts."""
        return sum(entry.count for entry in self.each)

    @property
    def max_penetration(self) -> float:
        """Depth of the deepest face inside any obstacle, beyond its vertices [m], 0 if none."""
        return max((entry.max_penetration for entry in self.each), default=0.0)

    @property
    def is_intersecting(self) -> bool:
        """True if an obstacle has passed a face, or a rigid body overlaps a pinned part."""
        return any(entry.intersection is not None for entry in self.each)

    @property
    def sentences(self) -> list[str]:
        """One sentence per obstacle that has passed a face or overlaps a pinned part."""
        return [each.intersection.sentence(each.name) for each in self.each if each.intersection is not None]

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values for JSON."""
        totals = {"count": self.count, "max_penetration": self.max_penetration}
        return totals | {"is_intersecting": self.is_intersecting} | asdict(self)

    def __str__(self) -> str:
        return (
            f"{pluralize(self.count, 'face')} penetrated by {pluralize(len(self.each), 'obstacle')}, deepest "
            f"{self.max_penetration:.2e} m"
        )


@dataclass(frozen=True)
class ContactReport:
    """Report of contact after a solve.

    Attributes:
        bodies: Contact between bodies, including self-contact; None without such contact in the scene.
        obstacles: Contact of vertices with obstacles; None without obstacles.
        faces: Faces of bodies with obstacles inside; None without obstacles.
    """

    bodies: BodyContactReport | None = None
    obstacles: ObstacleContactReport | None = None
    faces: FacePenetrationReport | None = None

    @property
    def has_passed(self) -> bool:
        """True if vertices have passed through an obstacle, or an obstacle has passed a face."""
        return any(part is not None and part.is_intersecting for part in (self.obstacles, self.faces))

    @property
    def is_intersecting(self) -> bool:
        """True if surfaces have passed each other or an obstacle, or an obstacle is in a pinned part."""
        return self.has_passed or (self.bodies is not None and self.bodies.is_intersecting)

    @property
    def sentences(self) -> list[str]:
        """Sentences on obstacles that have passed through bodies, with remedies."""
        return [text for part in (self.obstacles, self.faces) if part is not None for text in part.sentences]

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values for JSON.

        Returns:
            Values by name, including sums and extreme values over all obstacles.
        """
        parts = {"bodies": self.bodies, "obstacles": self.obstacles, "faces": self.faces}
        values = {name: None if part is None else part.to_dict() for name, part in parts.items()}
        return values | {"is_intersecting": self.is_intersecting}

    def __str__(self) -> str:
        faces = self.faces if self.faces is not None and self.faces.count else None
        return "\n".join(str(part) for part in (self.obstacles, faces, self.bodies) if part is not None)
