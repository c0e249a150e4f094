"""The part of a scene that is about what binds vertices: attachments, springs, and terms of one's own."""

from __future__ import annotations

from abc import ABC, abstractmethod

from numpy.typing import ArrayLike

from supple.scene.attachments import Attachment, attachment, attachment_at
from supple.scene.bodies import Body, VertexSet
from supple.scene.cables import Tendon, tendon
from supple.scene.checks import shown
from supple.scene.errors import SceneError
from supple.scene.ramps import AnyRamp
from supple.scene.springs import SpringSet, spring_set
from supple.scene.terms import TermMaker


class WithTies(ABC):
    """The part of a scene that is about ties."""

    attachments: list[Attachment]
    springs: list[SpringSet]
    cables: list[Tendon]
    further: list[TermMaker]

    def attach(
        self,
        a: VertexSet | Body,
        b: VertexSet | Body | ArrayLike | None = None,
        *,
        stiffness: float,
        normal: ArrayLike | None = None,
        tangent_stiffness: float | None = None,
        keep_offset: bool = False,
        within: float | None = None,
        at: ArrayLike | None = None,
    ) -> None:
        """Bind vertices a with weak constraints, energy ½ Cᵀ K C each with C = x_a - x_b [PBNG section 4.1].

        b: as many vertices, paired in order; or a body, of which each vertex of a takes the closest point at
        rest; or fixed points (3,) or (k, 3) [m]; or None, the points where a is at rest.
        stiffness k [N/m] gives K = k I; with a normal n, (3,) or one per vertex, K = k n nᵀ + k_τ (I - n nᵀ)
        where k_τ is tangent_stiffness [N/m], 0 unless given. keep_offset keeps gaps at rest open, else C = 0
        closes them. within [m]: for seams, only vertices of a that have their closest point, or the nearest
        of the vertices b in place of the one in order, no farther away at rest. at: points (k, 3) [m] at
        which body a is bound to body b, or to fixed points, in place of vertices: the closest points of both,
        which may lie between vertices on either side.
        """
        if isinstance(b, VertexSet | Body):
            self._vertices(b)
        chosen = self._vertices(a)
        if at is None:
            made = attachment(chosen, b, stiffness, normal, tangent_stiffness, keep_offset, within)
        elif within is not None:
            raise SceneError("within of an attachment chooses vertices; with at= there are none to choose.")
        else:
            made = attachment_at(at, a, b, stiffness, normal, tangent_stiffness, keep_offset)  # type: ignore[arg-type]
        self.attachments.append(made)

    def add_springs(
        self,
        a: VertexSet | Body,
        b: VertexSet | Body | ArrayLike,
        *,
        stiffness: ArrayLike,
        rest_length: ArrayLike | None = None,
    ) -> None:
        """Springs from vertices a to b, energy ½ k (l - L)² each, l their length.

        b: as many vertices, paired in order, or fixed points (3,) or (k, 3) [m]. stiffness k [N/m] and
        rest_length L [m] are numbers, or one for each; springs without a rest_length are as long as they are
        at rest.
        """
        if isinstance(b, VertexSet | Body):
            b = self._vertices(b)
        self.springs.append(spring_set(self._vertices(a), b, stiffness, rest_length))

    def add_cable(
        self,
        vertices: VertexSet | Body,
        points: ArrayLike,
        *,
        tension: float | None = None,
        length: float | None = None,
        stiffness: float | None = None,
        ramp: AnyRamp | None = None,
    ) -> None:
        """A cable, or tendon, through points (k, 3) [m] of a body: the nearest of these vertices at rest, in
        the order of the points. It slides through them without friction, and only pulls.

        tension [N]: the energy T Σ ℓ of all segments; ramp: what part of it acts when. Or length [m]: the
        energy ½ k (Σ ℓ - L)² where it is taut, with stiffness k [N/m]; ramp: how much of the way from its
        length at rest to this one is gone when.
        """
        chosen = self._vertices(vertices)
        self.cables.append(tendon(chosen, points, tension, length, stiffness, ramp))

    def add_term(self, make: TermMaker) -> None:
        """A term of one's own, of stencils between vertices of the scene: make(rest) -> the term, given the
        rest positions (n, 3) [m] of all vertices; `body.vertices` says which are whose."""
        if not callable(make):
            raise SceneError(f"A term is made by a function of the rest positions (n, 3); got {shown(make)}.")
        self.further.append(make)

    @abstractmethod
    def _vertices(self, chosen: VertexSet | Body) -> VertexSet:
        """Those that are chosen, of a body of this scene."""
