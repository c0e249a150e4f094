"""Binary glTF: one node per body, with its shapes in all frames as morph targets of an animation.

The mesh itself has the last shape, which programs without animation support show. glTF requires meters and y
up.
"""

from __future__ import annotations

import json
import logging
import shutil
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from supple.io.formats.interface import AddFrame, ExportContext, Format, FrameData, distinct, linear
from supple.io.replace_file import replacing
from supple.meshes.corners import corner_values, smooth_corners, split_corners, unit_normals
from supple.meshes.skinning import Part, skin_of

log = logging.getLogger("supple")

MAX_TARGETS = 256
"""Number of morph targets that every WebGL 2 implementation supports."""

MAX_BYTES = 256_000_000
"""Largest total size of all morph targets [bytes]; browsers run out of memory beyond."""

FLOAT, UNSIGNED = 5126, 5125
VERTICES, INDICES = 34962, 34963


@contextmanager
def write(path: Path, context: ExportContext) -> Iterator[AddFrame]:
    """Write a GLB file.

    Points are buffered in a temporary file, because the last shape comes first. If there are more frames than
    allowed targets, evenly spaced frames are written, with a warning.
    """
    surfaces = [_Surface(body) for body in context.bodies]
    times: dict[int, float] = {}
    raw, packed = (path.with_name(f".unfinished_{path.name}.{part}") for part in ("raw", "bin"))
    try:
        with raw.open("wb") as file:

            def add(frame: FrameData) -> None:
                for surface in surfaces:
                    file.write(surface.points(frame.positions).astype("<f4").tobytes())
                times[frame.index] = frame.time

            yield add
        with packed.open("wb") as binary:
            tree = _tree(_Binary(binary), surfaces, _Frames(raw, surfaces, times, path.name))
        with replacing(path) as temporary:
            _pack(temporary, tree, packed)
    finally:
        for part in (raw, packed):
            with suppress(OSError):  # does not exist in a read-only folder
                part.unlink(missing_ok=True)


class _Surface:
    """Surface of a body, with vertices duplicated at discontinuities of normals or texture coordinates.

    Attributes:
        source: (c,) point of each corner.
        uv: (c, 2) texture coordinates with v downwards, as required by glTF, or None.
    """

    def __init__(self, body: Part) -> None:
        self.name, self.two_sided = body.name, body.mesh.corners == 3
        self._skin, self._vertices = skin_of(body), body.vertices
        corners = smooth_corners(self._skin.deform(body.mesh.points), self._skin.triangles)
        self.uv = None
        if self._skin.uv is not None:
            corners = split_corners(corners, self._skin.uv)
            self.uv = corner_values(corners, self._skin.uv) * [1, -1] + [0, 1]
        self.triangles = corners
        self.source = corner_values(corners, self._skin.triangles)

    @property
    def n_points(self) -> int:
        return self._skin.n_points

    def points(self, positions: np.ndarray) -> np.ndarray:
        return self._skin.deform(positions[self._vertices])

    def corners(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions and unit normals (c, 3) float32; upward normals for degenerate triangles."""
        positions = points[self.source]
        normals = unit_normals(positions.astype(float), self.triangles)
        normals[~normals.any(axis=1)] = [0, 1, 0]
        return positions, normals.astype("<f4")


class _Binary:
    """Binary chunk under construction, with its buffer views and accessors."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.size = file, 0
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def add(
        self, values: np.ndarray, kind: str, component: int = FLOAT, target: int = 0, bounds: bool = False
    ) -> int:
        """Append values (n,) or (n, c), four bytes each; returns the number of their accessor."""
        data = np.ascontiguousarray(values, "<f4" if component == FLOAT else "<u4")
        view = {"buffer": 0, "byteOffset": self.size, "byteLength": data.nbytes}
        accessor = {
            "bufferView": len(self.views),
            "componentType": component,
            "count": len(data),
            "type": kind,
        }
        if bounds:
            low, high = np.atleast_1d(data.min(axis=0)), np.atleast_1d(data.max(axis=0))
            accessor |= {"min": low.tolist(), "max": high.tolist()}
        self._file.write(data.tobytes())
        self.size += data.nbytes
        self.views.append(view | ({"target": target} if target else {}))
        self.accessors.append(accessor)
        return len(self.accessors) - 1

    def add_vectors(self, values: np.ndarray, bounds: bool = False) -> int:
        return self.add(values, "VEC3", target=VERTICES, bounds=bounds)


class _Frames:
    """Evenly spaced frames that fit into a file: labels, times (f,) [s] and points."""

    def __init__(self, raw: Path, surfaces: Sequence[_Surface], times: dict[int, float], name: str) -> None:
        corners = sum(len(surface.source) for surface in surfaces)
        most = 1 + max(1, min(MAX_TARGETS, MAX_BYTES // (24 * corners)))
        if len(times) > most:
            log.warning(
                "%s has %d of the %d frames, the largest number that browsers support; USD and PC2 "
                "contain all.",
                name,
                most,
                len(times),
            )
        self._indices = np.round(np.linspace(0, len(times) - 1, min(len(times), most))).astype(int)
        self.labels = [f"frame {index}" for index in np.array([*times])[self._indices]]
        self.times = np.array([*times.values()])[self._indices]
        self._raw, self._first = raw, np.cumsum([0, *(surface.n_points for surface in surfaces)])

    def points(self, frame: int, surface: int) -> np.ndarray:
        """(n, 3) float32 points of one surface in one frame."""
        first, last, count = self._first[surface], self._first[surface + 1], self._first[-1]
        offset = 12 * (int(self._indices[frame]) * int(count) + int(first))
        return np.fromfile(self._raw, "<f4", 3 * int(last - first), offset=offset).reshape(-1, 3)


def _tree(binary: _Binary, surfaces: Sequence[_Surface], frames: _Frames) -> dict[str, Any]:
    """JSON chunk of the file."""
    names = distinct((surface.name for surface in surfaces), str)
    meshes = [_mesh(binary, surface, number, frames) for number, surface in enumerate(surfaces)]
    tree = {
        "asset": {"version": "2.0", "generator": "supple", "extras": {"units": "m, s", "up": "y"}},
        "scene": 0,
        "scenes": [{"nodes": list(range(len(names)))}],
        "nodes": [{"name": name, "mesh": number} for number, name in enumerate(names)],
        "meshes": [{"name": name, **mesh} for name, mesh in zip(names, meshes, strict=True)],
        "materials": [
            _material(name, number, surface.two_sided)
            for number, (name, surface) in enumerate(zip(names, surfaces, strict=True))
        ],
    }
    if len(frames.times) > 1:
        tree["animations"] = [_animation(binary, frames.times, len(names))]
    return tree | {
        "accessors": binary.accessors,
        "bufferViews": binary.views,
        "buffers": [{"byteLength": binary.size}],
    }


def _mesh(binary: _Binary, surface: _Surface, number: int, frames: _Frames) -> dict[str, Any]:
    """Mesh with the last shape, and morph targets for the earlier ones."""
    last = len(frames.times) - 1
    positions, normals = surface.corners(frames.points(last, number))
    attributes = {
        "POSITION": binary.add_vectors(positions, bounds=True),
        "NORMAL": binary.add_vectors(normals),
    }
    if surface.uv is not None:
        attributes["TEXCOORD_0"] = binary.add(surface.uv, "VEC2", target=VERTICES)
    indices = binary.add(surface.triangles.ravel(), "SCALAR", UNSIGNED, INDICES)
    primitive: dict[str, Any] = {"attributes": attributes, "indices": indices, "material": number}
    if last == 0:
        return {"primitives": [primitive]}
    primitive["targets"] = []
    for frame in range(last):
        target_points, turned = surface.corners(frames.points(frame, number))
        move = binary.add_vectors(target_points - positions, bounds=True)
        primitive["targets"].append({"POSITION": move, "NORMAL": binary.add_vectors(turned - normals)})
    extras = {"targetNames": frames.labels[:-1]}
    return {"primitives": [primitive], "weights": [0.0] * last, "extras": extras}


def _material(name: str, number: int, two_sided: bool) -> dict[str, Any]:
    """Matte material in the body's color, double-sided for cloth."""
    surface = {"metallicFactor": 0.0, "roughnessFactor": 0.85}
    return {
        "name": name,
        "doubleSided": two_sided,
        "pbrMetallicRoughness": {"baseColorFactor": [*linear(number).tolist(), 1.0], **surface},
    }


def _animation(binary: _Binary, times: np.ndarray, bodies: int) -> dict[str, Any]:
    """Animation of the weights: each frame's target has weight 1 at its time, linearly interpolated.

    At the time of the last frame all weights are 0.
    """
    weights = np.eye(len(times))[:, :-1]
    sampler = {
        "input": binary.add(times, "SCALAR", bounds=True),
        "output": binary.add(weights.ravel(), "SCALAR"),
        "interpolation": "LINEAR",
    }
    channels = [{"sampler": 0, "target": {"node": node, "path": "weights"}} for node in range(bodies)]
    return {"name": "simulation", "samplers": [sampler], "channels": channels}


def _pack(path: Path, tree: dict[str, Any], binary: Path) -> None:
    text = json.dumps(tree, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    size = binary.stat().st_size
    with path.open("wb") as file, binary.open("rb") as source:
        file.write(struct.pack("<4sII", b"glTF", 2, 28 + len(text) + size))
        file.write(struct.pack("<I4s", len(text), b"JSON") + text)
        file.write(struct.pack("<I4s", size, b"BIN\0"))
        shutil.copyfileobj(source, file)


GLB = Format("glb", "glTF, binary, animated by morph targets", "animation.glb", write)
