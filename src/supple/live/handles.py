"""Pointer interaction: grabbing the surface, and moving pins and obstacles by handles."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from supple.collision.obstacles.render_meshes import obstacle_meshes, transform_meshes
from supple.live.movable_pins import Placement
from supple.live.session import Session
from supple.live.snapshot import Handle, Snapshot, handle_at
from supple.live.viewport import BodyView


class Grabbing:
    """Mouse dragging of surfaces, with controls; browser tabs grab independently."""

    def __init__(self, gui: Any, session: Session, size: float) -> None:
        self._session = session
        with gui.add_folder("Grab", expand_by_default=False):
            self._radius = gui.add_slider("Radius [m]", 0.0, 0.3 * size, 0.001 * size, 0.06 * size)
            self._keep = gui.add_checkbox("Keep held", False, hint="Released vertices keep their positions.")
            gui.add_button("Release all").on_click(lambda _: session.release_all())

    def bind(self, body_view: BodyView) -> None:
        """Make the surface of a figure draggable."""

        async def dragged(event: Any) -> None:  # async callbacks run in order
            match event.phase:
                case "start":
                    self._grab(body_view, np.array(event.start_position), event.client_id)
                case "end":
                    self._session.release(event.client_id, self._keep.value)
                    return
            offset = np.array(event.end_position) - np.array(event.start_position)
            self._session.drag(offset, event.client_id)

        body_view.mesh.on_drag(dragged)

    def _grab(self, body_view: BodyView, point: np.ndarray, hand: int) -> None:
        """Grab the vertex nearest to a point (3,) [m] on a figure's surface."""
        positions = self._session.snapshot.shapes[body_view.number].positions + body_view.offset
        nearest = int(np.argmin(np.square(positions - point).sum(axis=1)))
        self._session.grab(nearest, self._radius.value, hand)


class PinHandles:
    """Transform gizmo for each pin set."""

    def __init__(self, server: Any, session: Session, size: float) -> None:
        self._session = session
        self._last_command = 0
        self._last_handles = list(session.snapshot.handles)
        self._gizmos = [self._gizmo(server, i, each, size) for i, each in enumerate(self._last_handles)]

    def _gizmo(self, server: Any, number: int, handle: Handle, size: float) -> Any:
        gizmo = server.scene.add_transform_controls(
            f"/handles/{number + 1}",
            scale=0.3 * size,
            position=handle.position,
            wxyz=handle.wxyz,
            opacity=0.8,
        )

        async def move(event: Any) -> None:
            turn = Rotation.from_quat(np.roll(gizmo.wxyz, -1))
            placement = Placement(np.array(gizmo.position), turn, self._last_handles[number].stretch)
            self._last_handles[number] = handle_at(handle.name, placement)
            self._last_command = self._session.place(number, placement)

        gizmo.on_update(move)
        return gizmo

    def set_visible(self, visible: bool) -> None:
        for gizmo in self._gizmos:
            gizmo.visible = visible

    def follow(self, snapshot: Snapshot) -> None:
        """Move gizmos to current pin positions unless commands are pending."""
        if snapshot.executed < self._last_command:
            return
        for i, (gizmo, handle) in enumerate(zip(self._gizmos, snapshot.handles, strict=True)):
            if not handle.is_close_to(self._last_handles[i]):
                self._last_handles[i] = handle
                gizmo.position, gizmo.wxyz = handle.position, handle.wxyz


class ObstacleHandles:
    """Translation gizmo for each visible obstacle with prescribed motion."""

    def __init__(self, server: Any, session: Session, size: float) -> None:
        self._session, self._last_command = session, 0
        self._last_offsets = session.snapshot.offsets.copy()
        self._gizmos: dict[int, tuple[Any, np.ndarray]] = {}
        first = session.snapshot
        obstacles = first.model.obstacles
        if obstacles is None:
            return
        free = {int(obstacles.obstacle[body.row]) for body in obstacles.rigid}
        visible_outlines = obstacle_meshes(obstacles, first.model.rest)
        for outline, points in zip(
            visible_outlines, transform_meshes(visible_outlines, obstacles, first.time), strict=True
        ):
            number = int(obstacles.obstacle[outline.row])
            if number not in self._gizmos and number not in free:
                middle = points.mean(axis=0) - self._last_offsets[number]
                self._gizmos[number] = self._gizmo(server, number, middle, size), middle

    def _gizmo(self, server: Any, number: int, middle: np.ndarray, size: float) -> Any:
        gizmo = server.scene.add_transform_controls(
            f"/obstacles/{number + 1}",
            scale=0.25 * size,
            position=middle,
            disable_rotations=True,
            opacity=0.6,
        )

        async def move(event: Any) -> None:
            self._last_offsets[number] = np.array(gizmo.position) - middle
            self._last_command = self._session.carry(number, self._last_offsets[number].copy())

        gizmo.on_update(move)
        return gizmo

    def set_visible(self, visible: bool) -> None:
        for gizmo, _ in self._gizmos.values():
            gizmo.visible = visible

    def follow(self, snapshot: Snapshot) -> None:
        """Move gizmos to current offsets, for example after a reset."""
        if snapshot.executed < self._last_command:
            return
        for number, (gizmo, middle) in self._gizmos.items():
            if not np.array_equal(snapshot.offsets[number], self._last_offsets[number]):
                self._last_offsets[number] = snapshot.offsets[number]
                gizmo.position = middle + self._last_offsets[number]
