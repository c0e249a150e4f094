"""PLY and OBJ: a file for each body and frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from supple.embedding import skin_of
from supple.io.formats.colours import srgb
from supple.io.formats.format import AddFrame, Format, Moment, Shot, Writer
from supple.io.formats.names import distinct, file_name
from supple.io.replacing import replacing


def _sequence(suffix: str, encode: Callable[[Any], bytes]) -> Writer:
    """Writes <body>_0001<suffix>, <body>_0002<suffix>, ... in place of all such files in the folder."""

    @contextmanager
    def write(path: Path, shot: Shot) -> Iterator[AddFrame]:
        import trimesh

        names = distinct((body.name for body in shot.bodies), file_name)
        skins = [skin_of(body) for body in shot.bodies]
        path.mkdir(parents=True, exist_ok=True)
        for old in path.glob(f"*_[0-9][0-9][0-9][0-9]*{suffix}"):
            old.unlink()

        def add(frame: Moment) -> None:
            for number, (name, body, skin) in enumerate(zip(names, shot.bodies, skins, strict=True)):
                points = skin.deform(frame.positions[body.vertices])
                colours = np.tile(np.append(srgb(number), 255), (skin.n_points, 1))
                mesh = trimesh.Trimesh(points, skin.triangles, vertex_colors=colours, process=False)
                with replacing(path / f"{name}_{frame.index:04d}{suffix}") as temporary:
                    temporary.write_bytes(encode(mesh))

        yield add

    return write


def _ply(mesh: Any) -> bytes:
    return mesh.export(file_type="ply", vertex_normal=False)


def _obj(mesh: Any) -> bytes:
    text = mesh.export(file_type="obj", include_normals=False, include_color=False, header=None, digits=9)
    return text.encode()


PLY = Format("ply", "PLY of surfaces, a file for each body and frame", "ply", _sequence(".ply", _ply))
OBJ = Format("obj", "OBJ of surfaces, a file for each body and frame", "obj", _sequence(".obj", _obj))
