"""3D view of the page: bodies, pins, obstacles and ground."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from supple.collision.obstacles.render_meshes import ObstacleMesh, obstacle_meshes, transform_meshes
from supple.live.gltf_surface import Scale, encode_surface
from supple.live.snapshot import Shape, Snapshot
from supple.model.model import Model
from supple.view.camera import OPENING_ANGLE, fit_camera
from supple.view.fields import FIELDS
from supple.view.renderers.drawing import contact_points
from supple.view.renderers.surface import Surface, surface_of
from supple.view.style import DARK, Theme

UNIFORM_COLOR = "plain"
"""Name of the uniform color, without a field."""

BODY_COLOR, OBSTACLE_COLOR = (111, 163, 189), (109, 115, 123)
SOLVER_SPACING = 1.5
"""Distance between the bodies of two compared solvers, relative to their width along x."""
BACKGROUND_COLORS = {"light": "#bcc1c6", "dark": DARK.background}
"""Background color of each theme, chosen so that pale field colors remain visible."""
CAMERA_DISTANCE = 1.6
"""Camera distance relative to the distance at which the body at rest fills the view."""


def rgb(color: str) -> tuple[int, int, int]:
    """Convert #rrggbb to three integers from 0 to 255."""
    red, green, blue = bytes.fromhex(color[1:])
    return red, green, blue


class BodyView:
    """Display of one solver's bodies.

    The plain mesh receives pointer events. For a field, it becomes transparent and one of two painted
    surfaces is visible while the browser loads the other.
    """

    def __init__(self, server: Any, number: int, surface: Surface, shape: Shape, offset: np.ndarray) -> None:
        """Create a figure.

        Args:
            server: The viser server.
            number: Number of the solver.
            surface: Visible surface.
            shape: Shape to display.
            offset: (3,) displacement of the figure [m].
        """
        self.number, self.offset = number, offset
        self._name = name = f"/solver{number + 1}"
        self._scene, self._surface = server.scene, surface
        corners = surface.corners(shape.positions)
        self._root = server.scene.add_frame(name, show_axes=False, position=offset)
        self.mesh = server.scene.add_mesh_simple(f"{name}/body", corners, surface.triangles, color=BODY_COLOR)
        self._paint: list[Any] = [None, None]
        self._turn = 0
        self._drawn: tuple[Any, Any] = None, None
        self._size = float(np.ptp(shape.positions, axis=0).max())
        self._middle = corners.mean(axis=0)
        self._marks: dict[str, tuple[Any, Any]] = {}
        self._obstacles: list[Any] = []
        self._label = server.scene.add_label(
            f"{name}/label", "", visible=False, anchor="bottom-center", font_screen_scale=1.1
        )

    def show(self, shape: Shape, scale: Scale | None, model: Any) -> None:
        """Draw a shape after changes of positions or color scale."""
        if self._drawn[0] is shape.positions and self._drawn[1] is scale:
            return
        self._drawn = shape.positions, scale
        corners = self._surface.corners(shape.positions)
        self._middle = corners.mean(axis=0)
        self.mesh.vertices = corners
        if scale is None:
            self._hide_paint()
        else:
            separate, values = scale.field.separate, scale.field.values(model, shape.positions, shape.step)
            colors = scale.colors(self._surface.values(values, separate))
            self._show_paint(encode_surface(self._surface, corners, colors, separate))

    def mark(self, name: str, points: np.ndarray, color: tuple[int, int, int]) -> None:
        """Draw dots at points (k, 3) [m], displaced outward to remain visible in front of the surface."""
        outwards = points - self._middle
        length = np.maximum(np.linalg.norm(outwards, axis=1, keepdims=True), 1e-9 * self._size)
        points = points + 0.006 * self._size * outwards / length
        kind = len(points), color
        before, dots = self._marks.get(name, (None, None))
        if kind == before and dots is not None:
            dots.points = points
            return
        if dots is not None:
            dots.remove()
        self._marks[name] = kind, self._dots(name, points, color) if len(points) else None

    def draw_obstacles(self, obstacle_meshes: list[ObstacleMesh], model: Model, time: float) -> None:
        """Draw translucent obstacles at a time [s]."""
        if model.obstacles is None:
            return
        for k, (outline, pose) in enumerate(
            zip(obstacle_meshes, transform_meshes(obstacle_meshes, model.obstacles, time), strict=True)
        ):
            points = pose.astype(np.float32)
            if k < len(self._obstacles):
                if not np.array_equal(self._obstacles[k].vertices, points):
                    self._obstacles[k].vertices = points
            else:
                triangles = outline.triangles.astype(np.uint32)
                style = {"color": OBSTACLE_COLOR, "opacity": 0.3, "side": "double", "cast_shadow": False}
                path = f"{self._name}/obstacle{k}"
                self._obstacles.append(self._scene.add_mesh_simple(path, points, triangles, **style))

    def _dots(self, name: str, points: np.ndarray, color: tuple[int, int, int]) -> Any:
        return self._scene.add_point_cloud(
            f"{self._name}/{name}",
            points,
            color,
            point_size=0.011 * self._size,
            point_shape="circle",
            precision="float32",
        )

    def set_label(self, text: str, top: np.ndarray) -> None:
        self._label.text, self._label.position, self._label.visible = text, top, bool(text)

    def finish(self) -> None:
        """Hide the previous painted surface once the current one has loaded."""
        other = self._paint[1 - self._turn]
        if other is not None:
            other.visible = False

    def remove(self) -> None:
        self._root.remove()

    def _show_paint(self, data: bytes) -> None:
        self._turn = 1 - self._turn
        mine = self._paint[self._turn]
        if mine is None:
            name = f"{self._name}/paint{self._turn}"
            self._paint[self._turn] = self._scene.add_glb(name, data, cast_shadow=False, receive_shadow=False)
        else:
            mine.glb_data, mine.visible = data, True
        self.mesh.opacity = 0.0

    def _hide_paint(self) -> None:
        for each in self._paint:
            if each is not None:
                each.visible = False
        self.mesh.opacity = None


class Viewport:
    """3D view with one `BodyView` per solver."""

    def __init__(self, server: Any, first: Snapshot, bind: Callable[[BodyView], None]) -> None:
        """Create the view.

        Args:
            server: The viser server.
            first: First snapshot.
            bind: Called with each new `BodyView`, to attach mouse events.
        """
        self._server, self._bind = server, bind
        self._surface = surface_of(first.model)
        rest = first.model.rest
        self._low, self._size = rest.min(axis=0), np.ptp(rest, axis=0)
        self.body_views: list[BodyView] = []
        self.scale: Scale | None = None
        self._pins = self._surface.pins
        obstacles = first.model.obstacles
        self._outlines = [] if obstacles is None else obstacle_meshes(obstacles, rest)
        server.scene.set_up_direction("+y")
        server.scene.world_axes.visible = False
        self._arrange(first)

    def color_by(self, name: str) -> None:
        """Color the bodies by a field of FIELDS, or by PLAIN."""
        smallest = 1e-3 * float(self._size.max()) if name == "displacement" else 0.0
        self.scale = None if name == UNIFORM_COLOR else Scale(FIELDS[name], smallest)

    def show(self, snapshot: Snapshot, theme: Theme) -> None:
        self._arrange(snapshot)
        for body_view, shape in zip(self.body_views, snapshot.shapes, strict=True):
            body_view.draw_obstacles(self._outlines, shape.model, snapshot.time)
            body_view.show(shape, self.scale, shape.model)
            body_view.mark("pins", shape.positions[self._pins], rgb(theme.pins))
            body_view.mark("held", shape.positions[snapshot.grabbed], rgb(theme.links))
            touching = contact_points(shape.model, shape.positions, snapshot.time)
            body_view.mark("contacts", touching, rgb(theme.contacts))
            label = shape.label if len(self.body_views) > 1 else ""
            body_view.set_label(label, self._low + self._size * [0.5, 1.25, 0.5])

    def finish(self) -> None:
        for body_view in self.body_views:
            body_view.finish()

    def set_theme(self, theme: Theme) -> None:
        """Set background and ground colors."""
        server, length = self._server, float(self._size.max())
        server.scene.set_background_image(
            np.full((1, 1, 3), rgb(BACKGROUND_COLORS[theme.name]), np.uint8), format="png"
        )
        server.scene.add_grid(
            "/ground",
            plane="xz",
            infinite_grid=True,
            cell_size=0.25 * length,
            section_size=length,
            cell_color=rgb(theme.faded),
            section_color=rgb(theme.faded),
            cell_thickness=0.4,
            section_thickness=0.8,
            fade_distance=14 * length,
            shadow_opacity=0.3 * theme.shadow,
            position=(0, self._low[1] - 0.35 * length, 0),
        )

    def _arrange(self, snapshot: Snapshot) -> None:
        """Create one figure per shape, side by side, and adjust the cameras."""
        if len(self.body_views) == len(snapshot.shapes):
            return
        while len(self.body_views) > len(snapshot.shapes):
            self.body_views.pop().remove()
        width = max(self._size[0], float(np.ptp(snapshot.shapes[0].positions[:, 0])))
        for i in range(len(self.body_views), len(snapshot.shapes)):
            offset = np.array([i * SOLVER_SPACING * width, 0.0, 0.0])
            body_view = BodyView(self._server, i, self._surface, snapshot.shapes[i], offset)
            self.body_views.append(body_view)
            self._bind(body_view)
        self._set_cameras(snapshot.model.rest)

    def _set_cameras(self, rest: np.ndarray) -> None:
        """Point all cameras at the figures, using the view direction of pictures."""
        points = np.concatenate([rest + body_view.offset for body_view in self.body_views])
        camera = fit_camera(points, aspect=1.0 if len(self.body_views) == 1 else 1.3)
        center = (points.min(axis=0) + points.max(axis=0)) / 2
        position = center + CAMERA_DISTANCE * (camera.position - center)
        start = self._server.initial_camera
        start.position, start.look_at, start.fov = position, center, OPENING_ANGLE
        for client in self._server.get_clients().values():
            client.camera.position, client.camera.look_at = position, center
