"""PC2 point caches for Blender's Mesh Cache modifier and 3ds Max, with surfaces as OBJ."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from supple.io.formats.interface import AddFrame, ExportContext, Format, FrameData, distinct, file_name
from supple.io.formats.sequences import obj_text
from supple.io.replace_file import replacing
from supple.meshes.skinning import skin_of


@contextmanager
def write(path: Path, context: ExportContext) -> Iterator[AddFrame]:
    """Write <body>.obj, the surface at rest, and <body>.pc2, its vertex positions in all frames."""
    path.mkdir(parents=True, exist_ok=True)
    names = distinct((body.name for body in context.bodies), file_name)
    skins = [skin_of(body) for body in context.bodies]
    with ExitStack() as stack:
        caches = [
            stack.enter_context(_cache(path / f"{name}.pc2", skin.n_points))
            for name, skin in zip(names, skins, strict=True)
        ]
        for name, body, skin in zip(names, context.bodies, skins, strict=True):
            with replacing(path / f"{name}.obj") as temporary:
                temporary.write_text(obj_text(skin, skin.deform(body.mesh.points), name), encoding="utf-8")

        def add(frame: FrameData) -> None:
            for body, skin, cache in zip(context.bodies, skins, caches, strict=True):
                cache.write(skin.deform(frame.positions[body.vertices]).astype("<f4").tobytes())

        yield add


@contextmanager
def _cache(path: Path, points: int) -> Iterator[BinaryIO]:
    """Open a point cache; its header, with the number of samples, is written last.

    The first frame is 0, with one sample per frame.
    """
    head = struct.Struct("<12siiffi")
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(bytes(head.size))
        yield file
        samples = (file.tell() - head.size) // (12 * points)
        file.seek(0)
        file.write(head.pack(b"POINTCACHE2", 1, points, 0.0, 1.0, samples))


PC2 = Format(
    "pc2", "PC2 point caches with surfaces at rest, for Blender", "pc2", write, files=("*.obj", "*.pc2")
)
