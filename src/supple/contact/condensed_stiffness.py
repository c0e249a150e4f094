"""Condensed stiffness of soft bodies in contact with dynamic rigid bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from supple.collision.obstacles.rigid_body import BodyContacts, Coupling, Response, RigidMotion

MAX_RESIDUAL_RISES = 3
"""Number of corrections per step that may increase the relative residual of rigid bodies above twice its
minimum.

Beyond it, the stiffness of the touching vertices, which is larger, replaces the condensed stiffness.
"""


class CondensedStiffness:
    """Responses of soft bodies in one step, recomputed only if the touching or sticking vertices change."""

    def __init__(self) -> None:
        self._key: tuple | None = None
        self._responses: Sequence[Response | None] = []
        self._least, self._rises = float("inf"), 0

    def record(self, relative_residual: float) -> None:
        """Record the relative residual of the rigid bodies before a correction."""
        self._rises += relative_residual > 2.0 * self._least
        self._least = min(self._least, relative_residual)

    def disable(self) -> None:
        """Disable the condensed stiffness for the rest of the step."""
        self._rises = MAX_RESIDUAL_RISES + 1

    def responses(
        self,
        motions: Sequence[RigidMotion],
        touching_vertices: Sequence[BodyContacts],
        condense: Callable[[Sequence[Coupling]], list[Response] | None] | None,
    ) -> Sequence[Response | None]:
        """Compute the response of soft bodies to each rigid body.

        Args:
            motions: The rigid bodies.
            touching_vertices: Vertices in contact with each of them.
            condense: Function that computes responses; None for no condensation.

        Returns:
            One response per rigid body; all None if there is nothing to condense.
        """
        none = [None] * len(motions)
        if (
            condense is None
            or self._rises > MAX_RESIDUAL_RISES
            or not any(len(t.vertices) for t in touching_vertices)
        ):
            return none
        key = tuple((each.vertices.tobytes(), each.sticks.tobytes()) for each in touching_vertices)
        if key != self._key:
            holds = [
                each.coupling(motion.center) for each, motion in zip(touching_vertices, motions, strict=True)
            ]
            self._key, self._responses = key, condense(holds) or none
        return self._responses
