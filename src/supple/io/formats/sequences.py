"""PLY and OBJ sequences: one file per body and frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from supple.io.checksums import delete_with_checksum
from supple.io.formats.interface import (
    AddFrame,
    ExportContext,
    Format,
    FrameData,
    Writer,
    distinct,
    file_name,
    srgb,
)
from supple.io.replace_file import replacing
from supple.meshes.skinning import Skin, skin_of


def about(name: str) -> str:
    """Comment for formats without metadata for units and axes."""
    return f"{name}, by supple: meters, y is up"


def obj_text(skin: Skin, points: np.ndarray, name: str) -> str:
    """OBJ text of a surface at points (n, 3) [m], with texture coordinates if present."""
    lines = [f"# {about(name)}", f"o {name}", *(f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in points)]
    if skin.uv is None:
        lines += [f"f {a} {b} {c}" for a, b, c in skin.triangles + 1]
    else:
        uv, corners = np.unique(skin.uv.reshape(-1, 2), axis=0, return_inverse=True)
        lines += [f"vt {u:.9g} {v:.9g}" for u, v in uv]
        pairs = np.stack([skin.triangles, corners.reshape(-1, 3)], axis=2).reshape(-1, 6) + 1
        lines += ["f {}/{} {}/{} {}/{}".format(*pair) for pair in pairs]
    return "\n".join(lines) + "\n"


Encode = Callable[[Skin, np.ndarray, str, np.ndarray], bytes]
"""encode(skin, points, name, color): file contents of a surface at points (n, 3) [m], color (3,) uint8."""


def _sequence(suffix: str, encode: Encode) -> Writer:
    """Writer of <body>_0000<suffix>, <body>_0001<suffix>, ...; replaces all such files in the folder."""

    @contextmanager
    def write(path: Path, context: ExportContext) -> Iterator[AddFrame]:
        names = distinct((body.name for body in context.bodies), file_name)
        skins = [skin_of(body) for body in context.bodies]
        path.mkdir(parents=True, exist_ok=True)
        for old in path.glob(f"*_[0-9][0-9][0-9][0-9]*{suffix}"):
            delete_with_checksum(old)

        def add(frame: FrameData) -> None:
            for number, (name, body, skin) in enumerate(zip(names, context.bodies, skins, strict=True)):
                points = skin.deform(frame.positions[body.vertices])
                with replacing(path / f"{name}_{frame.index:04d}{suffix}") as temporary:
                    temporary.write_bytes(encode(skin, points, name, srgb(number)))

        yield add

    return write


def _ply(skin: Skin, points: np.ndarray, name: str, color: np.ndarray) -> bytes:
    import trimesh

    colors = np.tile(np.append(color, 255), (skin.n_points, 1))
    mesh: Any = trimesh.Trimesh(points, skin.triangles, vertex_colors=colors, process=False)
    first, line, rest = mesh.export(file_type="ply", vertex_normal=False).partition(b"1.0\n")
    return first + line + f"comment {about(name)}\n".encode() + rest


def _obj(skin: Skin, points: np.ndarray, name: str, color: np.ndarray) -> bytes:
    return obj_text(skin, points, name).encode()


def _format(name: str, encode: Encode) -> Format:
    description = f"{name.upper()} of surfaces, one file per body and frame"
    return Format(name, description, name, _sequence(f".{name}", encode), files=(f"*_[0-9]*.{name}",))


PLY, OBJ = _format("ply", _ply), _format("obj", _obj)
