"""glTF, binary: the shape in the last frame, a node for each body."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from supple.embedding import skin_of
from supple.io.formats.colours import linear
from supple.io.formats.format import AddFrame, Format, Moment, Shot
from supple.io.formats.names import distinct
from supple.io.replacing import replacing


@contextmanager
def write(path: Path, shot: Shot) -> Iterator[AddFrame]:
    last: list[Moment] = []

    def add(frame: Moment) -> None:
        last[:] = [frame]

    yield add
    if last:
        with replacing(path) as temporary:
            temporary.write_bytes(_scene(shot, last[0].positions).export(file_type="glb"))


def _scene(shot: Shot, positions: np.ndarray) -> Any:
    import trimesh

    scene = trimesh.Scene()
    names = distinct((body.name for body in shot.bodies), str)
    for number, (name, body) in enumerate(zip(names, shot.bodies, strict=True)):
        skin = skin_of(body)
        points = skin.deform(positions[body.vertices])
        colour = np.append(np.round(255 * linear(number)), 255).astype(np.uint8)
        colours = np.tile(colour, (skin.n_points, 1))
        mesh = trimesh.Trimesh(points, skin.triangles, vertex_colors=colours, process=False)
        scene.add_geometry(mesh, node_name=name, geom_name=name)
    return scene


GLB = Format("glb", "glTF, binary, of the last frame", "final.glb", write)
