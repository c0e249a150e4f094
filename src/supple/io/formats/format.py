"""What a file format is: a name, a place for what it writes, and a writer that takes frames one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from supple.embedding import Part
from supple.evaluation import Fields
from supple.io.errors import ResultsError


@dataclass(frozen=True, eq=False)
class Moment:
    """A frame: positions (n, 3) [m] of all vertices of a scene; its index, 0 for the start; its time [s]; and
    what else there is to say of its vertices and tetrahedra."""

    positions: np.ndarray
    index: int
    time: float
    fields: Fields = field(default_factory=Fields)


@dataclass(frozen=True, eq=False)
class Shot:
    """What is the same in all frames: the bodies, and the time dt [s] from frame to frame."""

    bodies: Sequence[Part]
    dt: float


AddFrame = Callable[[Moment], None]
Writer = Callable[[Path, Shot], AbstractContextManager[AddFrame]]
"""writer(path, shot) is entered to get a function that adds a frame; what was written is complete after a
clean exit, and files that it replaces stay when there is none."""


@dataclass(frozen=True)
class Format:
    """path: the file or folder that is written, relative to the folder for exports. package: what the writer
    imports, from this extra of supple. files: patterns of what it writes into a folder, in which there may be
    other files, too. fields: whether it can hold those of frames; obstacles: whether it shows them beside
    bodies."""

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
        """All that it writes, relative to the folder for exports."""
        return tuple(f"{self.path}/{pattern}" for pattern in self.files) or (self.path,)

    def refuse_missing_package(self) -> None:
        root = self.package.split(".")[0]
        if root and find_spec(root) is None:
            raise ResultsError(
                f"format {self.name!r} needs the package {root}: pip install 'supple[{self.extra}]'"
            )
