"""Interface of file formats, and the names and colors of bodies in files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from supple.io.errors import ResultsError
from supple.meshes.skinning import Part
from supple.postprocess.evaluation import Fields


@dataclass(frozen=True, eq=False)
class FrameData:
    """A frame for export.

    Attributes:
        positions: (n, 3) positions of all vertices of a scene [m].
        index: Frame number, 0 for the initial state.
        time: Time [s].
        fields: Additional fields of vertices and cells.
    """

    positions: np.ndarray
    index: int
    time: float
    fields: Fields = field(default_factory=Fields)


@dataclass(frozen=True, eq=False)
class ExportContext:
    """Data shared by all frames: the bodies, and the time dt [s] from frame to frame."""

    bodies: Sequence[Part]
    dt: float


AddFrame = Callable[[FrameData], None]
Writer = Callable[[Path, ExportContext], AbstractContextManager[AddFrame]]
"""Context manager writer(path, context), which returns a function that adds a frame. The output is complete
after a clean exit; otherwise existing files are kept."""


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        name: Name on the command line.
        description: One line.
        path: Output file or folder, relative to the export folder.
        writer: Writer.
        package: Package that the writer imports, "" for none.
        extra: Extra of supple that installs it.
        files: Patterns of files in an output folder that may contain other files, too.
        fields: True if the format supports fields.
        obstacles: True if obstacles are written as additional bodies.
    """

    name: str
    description: str
    path: str
    writer: Writer
    package: str = ""
    extra: str = ""
    files: tuple[str, ...] = ()
    fields: bool = False
    obstacles: bool = True

    @property
    def patterns(self) -> tuple[str, ...]:
        """Patterns of all output files, relative to the export folder."""
        return tuple(f"{self.path}/{pattern}" for pattern in self.files) or (self.path,)

    def refuse_missing_package(self) -> None:
        """Raise a ResultsError if the required package is not installed."""
        root = self.package.split(".")[0]
        if root and find_spec(root) is None:
            raise ResultsError(
                f"format {self.name!r} needs the package {root}: pip install 'supple[{self.extra}]'"
            )


def file_name(name: str) -> str:
    """Replace characters other than letters, digits, '-', '_' and '.'; no leading dot."""
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "body"


def distinct(names: Iterable[str], valid: Callable[[str], str]) -> list[str]:
    """Valid names in the same order, with suffixes '_2', '_3', ... for duplicates.

    Names that differ only in case count as duplicates, as on some file systems.
    """
    taken: set[str] = set()
    chosen = []
    for name in map(valid, names):
        candidate, number = name, 1
        while candidate.lower() in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.lower())
        chosen.append(candidate)
    return chosen


BODY_COLORS = ("#7fb3c8", "#e0a458", "#9bbf85", "#c97b84", "#a08fc4", "#d4c25a", "#8a9099", "#5c7fa3")


def srgb(body: int) -> np.ndarray:
    """sRGB color (3,) uint8 of a body."""
    return np.frombuffer(bytes.fromhex(BODY_COLORS[body % len(BODY_COLORS)][1:]), np.uint8)


def linear(body: int) -> np.ndarray:
    """Linear body color (3,), between 0 and 1, as required by USD and glTF."""
    return to_linear(srgb(body) / 255)


def to_linear(colors: np.ndarray) -> np.ndarray:
    """Convert sRGB from 0 to 1 to linear light."""
    return np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
