"""Obstacles in exported files: additional bodies, whose points follow those of the scene's bodies."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from supple.contact import Obstacles
from supple.contact.outlines import Outline, outlines, placed
from supple.evaluation import Fields
from supple.io.bodies import SavedBody
from supple.io.formats import Moment, Shot
from supple.meshes import TriMesh


@dataclass(frozen=True, eq=False)
class Shown:
    """Obstacles of a shot as additional bodies, with outlines."""

    obstacles: Obstacles
    shapes: tuple[Outline, ...]
    bodies: tuple[SavedBody, ...]

    @staticmethod
    def of(obstacles: Obstacles | None, shot: Shot) -> Shown | None:
        """Obstacles of a shot; None without visible obstacles."""
        if obstacles is None:
            return None
        points = np.concatenate([body.mesh.points for body in shot.bodies])
        shapes = sorted(outlines(obstacles, points), key=lambda each: int(obstacles.obstacle[each.row]))
        places = placed(shapes, obstacles, 0.0)
        first, bodies = len(points), []
        for k, name in enumerate(obstacles.names):
            mine = [i for i, each in enumerate(shapes) if obstacles.obstacle[each.row] == k]
            if mine:
                starts = np.cumsum([0, *(len(places[i]) for i in mine)])
                triangles = np.concatenate(
                    [s + shapes[i].triangles for s, i in zip(starts[:-1], mine, strict=True)]
                )
                mesh = TriMesh(np.concatenate([places[i] for i in mine]), triangles)
                own = slice(first, first + int(starts[-1]))
                bodies.append(SavedBody(name, mesh, own, None, mesh.measures))
                first = own.stop
        return Shown(obstacles, tuple(shapes), tuple(bodies)) if bodies else None

    def shot(self, shot: Shot) -> Shot:
        """The shot with obstacles as additional bodies."""
        return replace(shot, bodies=[*shot.bodies, *self.bodies])

    def moment(self, moment: Moment, time: float) -> Moment:
        """Append obstacle points at a time [s] to a frame; body fields are 0 there."""
        points = placed(self.shapes, self.obstacles, time)
        cells = sum(body.mesh.n_cells for body in self.bodies)
        vertices = sum(map(len, points))
        fields = Fields(
            {name: _padded(values, vertices) for name, values in moment.fields.vertices.items()},
            {name: _padded(values, cells) for name, values in moment.fields.cells.items()},
        )
        return replace(moment, positions=np.concatenate([moment.positions, *points]), fields=fields)


def _padded(values: np.ndarray, further: int) -> np.ndarray:
    return np.concatenate([values, np.zeros((further, *values.shape[1:]), values.dtype)])
