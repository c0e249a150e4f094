"""Interface of file formats: name, output path, and a writer that accepts frames one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
