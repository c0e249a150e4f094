"""Repair of results files that `supple run --resume` can write from the scene, without solving."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from supple.cli.job import Job
    from supple.io import ResultsFolder


def repair_results(
    job: Job, folder: ResultsFolder, account: dict[str, Any], note: Callable[[str], None]
) -> None:
    """Repair missing or damaged files from the scene.

    These are the initial frame, scene.toml, skins.npz, mesh_data.npz and animation.pvd.

    Args:
        job: Scene and options that the folder was written with.
        folder: Results folder, whose frames from 1 on are intact.
        account: Report of these frames.
        note: Called with a sentence for each repaired file.
    """
    from supple.io import joined, write_data, write_frame, write_pvd, write_skins
    from supple.io.bodies import DATA, SKINS
    from supple.io.frames import PVD, pvd_text
    from supple.io.replacing import replacing
    from supple.runs.saved import SCENE
    from supple.scene import build_model

    bodies, path = job.file.scene.bodies, folder.path
    damage = folder.start_damage(account["scene"]["vertices"])
    if damage is not None:
        note(f"{damage} It is written again from the scene.")
        fields = job.fields_at_start(build_model(job.file.scene)) if job.fields else None
        write_frame(path, job.start, joined(bodies), fields)
    text = job.file.path.read_bytes()
    if not (path / SCENE).is_file() or (path / SCENE).read_bytes() != text:
        _say(note, path / SCENE)
        with replacing(path / SCENE) as copy:
            copy.write_bytes(text)
    for name, write in ((SKINS, write_skins), (DATA, write_data)):
        if _is_damaged(path / name):
            _say(note, path / name)
            write(path, bodies)
    times = [0.0, *(frame["time"] for frame in account["frames"])]
    if not _has_text(path / PVD, pvd_text(path, times, first=0)):
        _say(note, path / PVD)
        write_pvd(path, times, first=0)


def _say(note: Callable[[str], None], path: Path) -> None:
    note(f"{path} is {'damaged' if path.exists() else 'missing'} and is written again.")


def _has_text(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode("utf-8")


def _is_damaged(path: Path) -> bool:
    """True if an existing array file is unreadable or fails its checksum."""
    from supple.input_files import open_arrays
    from supple.io.checksums import read_checksums

    checksums = read_checksums(path.parent)
    if checksums is not None and path.name in checksums.digests:
        return not checksums.is_whole(path.name)
    if not path.exists():
        return False
    try:
        with open_arrays(path) as arrays:
            for name in arrays:
                arrays[name]
    except (ValueError, OSError, KeyError):
        return True
    return False
