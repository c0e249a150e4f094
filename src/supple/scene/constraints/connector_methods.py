"""Methods of a scene that add connectors: attachments, springs, cables, and user-defined terms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from supple.scene.bodies import Body, VertexSet
from supple.scene.constraints.attachments import Attachment, attachment, attachment_at
from supple.scene.constraints.cables import Tendon, tendon
from supple.scene.constraints.springs import SpringSet, spring_set
from supple.scene.errors import SceneError
from supple.scene.loads.ramps import AnyRamp
from supple.scene.value_checks import format_value
from supple.terms import Term

if TYPE_CHECKING:
    from supple.scene.scene import Scene


class ConnectorMethods(ABC):
    """Base class of `Scene` with the methods that add connectors."""

    attachments: list[Attachment]
    springs: list[SpringSet]
    cables: list[Tendon]
    user_terms: list[TermMaker]

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
        """Attach vertices by weak constraints with energy ½ Cᵀ K C, C = x_a - x_b [PBNG section 4.1].

        Args:
            a: Vertices, or a body.
            b: The same number of vertices, paired in order; a body, whose closest point at rest is taken for
                each vertex of a; fixed points (3,) or (k, 3) [m]; or None for the rest positions of a.
            stiffness: k [N/m] in K = k I, or with a normal n in K = k n nᵀ + k_τ (I - n nᵀ).
            normal: n, (3,) or one per vertex.
            tangent_stiffness: k_τ [N/m]. Default: 0.
            keep_offset: True to keep the gaps at rest open; otherwise C = 0 closes them.
            within: For seams: largest distance at rest [m] of attached vertices. Each vertex of a is attached
                to its closest point, or to the nearest of the vertices b instead of the one in order.
            at: Points (k, 3) [m] at which body a is bound to body b or to fixed points, instead of vertices:
                the closest points of both bodies, which may lie between vertices.

        Raises:
            SceneError: An argument is invalid.
        """
        if isinstance(b, VertexSet | Body):
            self._vertices(b)
        chosen = self._vertices(a)
        if at is None:
            made = attachment(chosen, b, stiffness, normal, tangent_stiffness, keep_offset, within)
        elif within is not None:
            raise SceneError(
                "within of an attachment selects vertices, and cannot be combined with at=; omit one of them."
            )
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
        """Add springs from vertices a to b with energy ½ k (l - L)² each, l their length.

        Args:
            a: Vertices, or a body.
            b: The same number of vertices, paired in order, or fixed points (3,) or (k, 3) [m].
            stiffness: k [N/m], one number or one per spring.
            rest_length: L [m], one number or one per spring. Default: length at rest.

        Raises:
            SceneError: An argument is invalid.
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
        """Add a cable (tendon) through body points.

        It slides through its points without friction and only pulls. A tension T has the energy T Σ ℓ, summed
        over the segments; a length L has the energy ½ k (Σ ℓ - L)² while the cable is taut.

        Args:
            vertices: Vertices that the cable may lead through, or a body.
            points: (k, 3) points [m] in order; the cable leads through the vertices nearest to them at rest.
            tension: T [N], or give `length`.
            length: L [m].
            stiffness: k [N/m] of a cable with a length.
            ramp: Fraction over time of the tension, or of the change from the rest length to `length`.

        Raises:
            SceneError: An argument is invalid, or a point is far from all vertices.
        """
        chosen = self._vertices(vertices)
        self.cables.append(tendon(chosen, points, tension, length, stiffness, ramp))

    def add_term(self, make: TermMaker) -> None:
        """Add a user-defined term with stencils over scene vertices.

        Args:
            make: Function of the rest positions (n, 3) [m] of all vertices that returns the term. Vertices of
                a body are `body.vertices`.

        Raises:
            SceneError: `make` is not callable.
        """
        if not callable(make):
            raise SceneError(
                "add_term needs a function of the rest positions (n, 3) that returns a term; got "
                f"{format_value(make)}."
            )
        self.user_terms.append(make)

    @abstractmethod
    def _vertices(self, chosen: VertexSet | Body) -> VertexSet:
        """Return the selected vertices; refuse bodies of other scenes."""


TermMaker = Callable[[np.ndarray], Term]
"""Function of the rest positions (n, 3) [m] of all vertices that builds a term."""


def make_user_terms(scene: Scene) -> tuple[Term, ...]:
    """Build and check user-defined scene terms."""
    rest = np.concatenate([body.points for body in scene.bodies])
    terms = tuple(make(rest) for make in scene.user_terms)
    for term in terms:
        ids = np.asarray(term.vertices)
        if ids.ndim != 2 or ids.dtype.kind not in "iu":
            raise SceneError(
                f"Vertices of a term must be whole numbers (m, k); those of {term.name} have shape "
                f"{ids.shape} and type {ids.dtype}."
            )
        if ids.size and not (ids.min() >= 0 and ids.max() < len(rest)):
            raise SceneError(
                f"Vertices of {term.name} must lie between 0 and {len(rest) - 1}, the vertices of "
                f"the scene; got {ids.min()} to {ids.max()}."
            )
    return terms
