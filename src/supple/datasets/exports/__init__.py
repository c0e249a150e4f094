"""Data sets in other formats.

Each format has a module with a function `write` and a text `READING_GUIDE` for the data card, which explains
how to open the written files.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from supple.datasets.errors import DatasetError
from supple.datasets.read.data_card import card_of_export
from supple.datasets.read.dataset import Dataset
from supple.datasets.store.scene_files import COPY_FOLDER
from supple.io.replace_file import replacing_folder
from supple.support.arguments import suggest_name
from supple.support.progress import Progress


@dataclass(frozen=True)
class Export:
    """Export format.

    Attributes:
        name: Name of the format.
        module: Module of this package that writes it.
        package: Python package that it requires.
        install: Name of that package on PyPI.
    """

    name: str
    module: str
    package: str | None = None
    install: str | None = None


EXPORTS = {
    export.name: export
    for export in (
        Export("lance", "lance", "lance", "pylance"),
        Export("hdf5", "hdf5", "h5py", "h5py"),
        Export("webdataset", "webdataset"),
        Export("plaid", "plaid"),
    )
}


def export_dataset(
    data: Dataset, format: str, output: Path | None = None, progress: Progress | None = None
) -> Path:
    """Export the converged samples with inputs, reports, splits and a data card.

    Args:
        data: The data set.
        format: Name of the format: "lance", "hdf5", "webdataset" or "plaid".
        output: Folder to write, replacing an earlier export; STORE_FORMAT next to the store by default.
        progress: Called as progress(done, total) after each sample.

    Returns:
        The folder.

    Raises:
        DatasetError: The format is unknown, its package is missing, no sample converged, or the folder is not
            an earlier export.
    """
    if format not in EXPORTS:
        raise DatasetError(f"there is no format {format!r} for data sets; {suggest_name(format, EXPORTS)}")
    export = EXPORTS[format]
    if export.package is not None and find_spec(export.package) is None:
        raise DatasetError(
            f"{format} needs {export.install}: pip install {export.install}, or 'supple[datasets]'."
        )
    if not len(data.ids):
        raise DatasetError(f"{data.path} has no sample that converged, so there is nothing to export.")
    folder = data.path.with_name(f"{data.path.stem}_{format}") if output is None else output
    _refuse_precious(folder, data.path)
    folder.parent.mkdir(parents=True, exist_ok=True)
    module: Any = import_module(f"supple.datasets.exports.{export.module}")
    with replacing_folder(folder) as unfinished:
        unfinished.mkdir()
        (unfinished / "README.md").write_text(
            card_of_export(data.store, data.ids, module.READING_GUIDE), encoding="utf-8"
        )
        (unfinished / "scene.toml").write_text(
            (data.path / "scene.toml").read_text(encoding="utf-8"), encoding="utf-8"
        )
        if (data.path / COPY_FOLDER).is_dir():
            shutil.copytree(data.path / COPY_FOLDER, unfinished / COPY_FOLDER)
        module.write(unfinished, data, progress or (lambda done, total: None))
    return folder


def _refuse_precious(folder: Path, store: Path) -> None:
    """Refuse to replace a folder that is not an earlier export."""
    if folder.resolve() in (store.resolve(), *store.resolve().parents):
        raise DatasetError(f"{folder} is the data set itself, or contains it; name another folder.")
    if not folder.exists():
        return
    earlier = folder.is_dir() and {"README.md", "scene.toml"} <= {path.name for path in folder.iterdir()}
    if not earlier and (not folder.is_dir() or any(folder.iterdir())):
        raise DatasetError(
            f"{folder} exists and is not an earlier export, so it is not replaced; name another "
            "folder, or remove it first."
        )
