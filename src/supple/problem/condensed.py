"""The condensed stiffness of soft bodies that rigid bodies with a mass feel in a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from supple.contact.rigid import Hold, Response, RigidMotion, Touching

MOST_RISES = 3
"""Corrections in a step that may leave rigid bodies further from balance than the best so far, before the
stiffness of the touching vertices, which is larger, stands in for the condensed one."""


class Condensed:
    """Responses of soft bodies in one step: computed again only where other vertices touch or stick."""

    def __init__(self) -> None:
        self._key: tuple | None = None
        self._responses: Sequence[Response | None] = []
        self._least, self._rises = float("inf"), 0

    def see(self, imbalance: float) -> None:
        """Take note of how far rigid bodies were from balance before a correction."""
        self._rises += imbalance > 2.0 * self._least
        self._least = min(self._least, imbalance)

    def disable(self) -> None:
        """Use no condensed stiffness for the rest of the step."""
        self._rises = MOST_RISES + 1

    def responses(
        self,
        motions: Sequence[RigidMotion],
        touched: Sequence[Touching],
        condense: Callable[[Sequence[Hold]], list[Response] | None] | None,
    ) -> Sequence[Response | None]:
        """One response for each rigid body; None for all of them where there is nothing to condense.

        Args:
            motions: The rigid bodies.
            touched: The vertices that touch each of them.
            condense: Computes responses.
        """
        none = [None] * len(motions)
        if condense is None or self._rises > MOST_RISES or not any(len(t.vertices) for t in touched):
            return none
        key = tuple((each.vertices.tobytes(), each.sticks.tobytes()) for each in touched)
        if key != self._key:
            holds = [each.hold(motion.centre) for each, motion in zip(touched, motions, strict=True)]
            self._key, self._responses = key, condense(holds) or none
        return self._responses
