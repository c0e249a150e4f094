"""Tetrahedralization of closed surfaces by fTetWild, through pytetwild."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from platformdirs import user_cache_path

from supple.kernels.compile.disk_cache import make_private_folder
from supple.meshes.checks import MeshError, format_size
from supple.meshes.tetmesh import TetMesh
from supple.meshes.trimesh import TriMesh
from supple.support.arguments import format_value
from supple.support.keywords import suggest_keywords
from supple.support.progress import Progress

log = logging.getLogger("supple.meshes")

Messages = Callable[[str], None]
"""Function that logs a sentence about the stage that runs."""

STAGES = 2
"""Stages of progress: simplification of the surface, and its filling."""

EDGE_RATIO = 2.0
"""Ratio of tetrahedron to triangle edge length; finer surfaces are simplified first."""

ENVELOPE = 0.1
"""Largest displacement of the surface relative to the edge length; smaller values need more tetrahedra."""

MAX_RELATIVE_EDGE = 0.5
"""Longest edge length relative to the surface's diagonal. Beyond it, fTetWild takes ever more time and memory
for ever fewer tetrahedra."""

MANY_TETS, MAX_TETS = 5e5, 10e6
"""Number of tetrahedra above which a warning is logged, and the largest accepted number."""


@suggest_keywords
def tetrahedralize(
    surface: TriMesh, edge_length: float | None = None, *, progress: Progress | None = None
) -> TetMesh:
    """Fill a closed surface with tetrahedra.

    It takes seconds to minutes, and repeated runs differ slightly. Results are cached in the user's cache
    folder: the same surface with the same edge length is loaded from there. Details smaller than a tenth of
    the edge length are lost. The logger "supple.meshes" receives messages about the stage that runs.

    Args:
        surface: Closed surface.
        edge_length: Approximate edge length of the tetrahedra [m]; by default a twentieth of the surface's
            diagonal.
        progress: Called as progress(done, total) after each of the two stages: the surface is simplified, and
            filled.

    Returns:
        The mesh.

    Raises:
        MeshError: Open surface, an edge length above half the diagonal, or more than ten million tetrahedra
            expected.
    """
    return fill_surface(surface, edge_length, progress, log.info)


def fill_surface(
    surface: TriMesh, edge_length: float | None, progress: Progress | None, message: Messages
) -> TetMesh:
    """Implement `tetrahedralize`; messages about the stages go to `message`."""
    if not isinstance(surface, TriMesh):
        raise TypeError(
            "tetrahedralize needs a closed surface, for example "
            f"supple.meshes.load_surface('body.obj'); got {format_value(surface)}"
        )
    if edge_length is not None and not 0 < edge_length < np.inf:
        raise MeshError(f"edge_length must be positive and finite [m], got {edge_length!r}.")
    length = surface.diagonal / 20 if edge_length is None else float(edge_length)
    _check(surface, length)
    cached = cache_folder() / f"{_fingerprint(surface, length)}.npz"
    cached_tets = _load_cached(cached)
    if cached_tets is None:
        simplified = _simplify(surface, length, message)
        if progress is not None:
            progress(1, STAGES)
        cached_tets = _fill(simplified, length, message)
        _store_cached(cached, cached_tets)
    if progress is not None:
        progress(STAGES, STAGES)
    mesh = TetMesh(*cached_tets, repair=True)
    _compare_volumes(surface, mesh)
    return mesh


def cache_folder() -> Path:
    """Cache folder of tetrahedralized surfaces."""
    return user_cache_path("supple") / "meshes"


def _check(surface: TriMesh, length: float) -> None:
    missing = [name for name in ("pytetwild", "fast_simplification") if find_spec(name) is None]
    if missing:
        raise MeshError(
            f"Filling a surface with tetrahedra needs {' and '.join(missing)}: "
            "pip install 'supple[tetrahedralize]'"
        )
    surface.refuse_open()
    volume = abs(surface.enclosed_volume)
    if not volume > 1e-9 * surface.diagonal**3:
        raise MeshError(f"The surface encloses no volume ({volume:.3g} m³), so there is nothing to fill.")
    _refuse_coarse(surface, length)
    _refuse_fine(surface, length)


def _refuse_coarse(surface: TriMesh, length: float) -> None:
    longest = MAX_RELATIVE_EDGE * surface.diagonal
    if length > longest:
        raise MeshError(
            f"edge_length = {length:.3g} m is too large for a surface that is "
            f"{format_size(surface.size)}: it may be {longest:.3g} m at most, half the diagonal. "
            f"{surface.diagonal / 20:.3g} m, a twentieth, is usual. Scale the surface if its file is "
            "not in meters."
        )


def _refuse_fine(surface: TriMesh, length: float) -> None:
    """Refuse edge lengths that yield too many tetrahedra; warn if the computation will take long."""
    count = estimated_tets(surface, length)
    if count <= MANY_TETS:
        return
    expected = (
        f"edge_length = {length:.3g} m gives about {count / 1e6:.2g} million tetrahedra in a surface that is "
        f"{format_size(surface.size)}"
    )
    moderate = _length_for(surface, MANY_TETS / 5)
    if count > MAX_TETS:
        raise MeshError(
            f"{expected}; the limit is {MAX_TETS / 1e6:.0f} million. {moderate:.2g} m would give "
            f"about {MANY_TETS / 5:,.0f}. Scale the surface if its file is not in meters."
        )
    log.warning(
        "%s, which takes a long time; %.2g m would give about %s.",
        expected,
        moderate,
        f"{MANY_TETS / 5:,.0f}",
    )


def estimated_tets(surface: TriMesh, length: float) -> float:
    """Estimate the number of tetrahedra with edges of the given length [m].

    The volume over that of a regular tetrahedron, or the number of surface triangles if it is larger, as in
    thin bodies.
    """
    return max(
        6 * sqrt(2) * abs(surface.enclosed_volume) / length**3, surface.area / (sqrt(3) / 4 * length**2)
    )


def _length_for(surface: TriMesh, count: float) -> float:
    """Edge length [m] that yields about `count` tetrahedra."""
    by_volume = (6 * sqrt(2) * abs(surface.enclosed_volume) / count) ** (1 / 3)
    return max(by_volume, sqrt(surface.area / (sqrt(3) / 4 * count)))


def _simplify(surface: TriMesh, length: float, message: Messages) -> TriMesh:
    """Simplify a surface that is finer than the tetrahedra of this edge length require."""
    import fast_simplification

    if surface.enclosed_volume < 0:
        surface = TriMesh(surface.points, surface.triangles[:, ::-1])
    target_count = max(100, round(surface.area / (sqrt(3) / 4 * (length / EDGE_RATIO) ** 2)))
    if surface.n_triangles < 1.5 * target_count:
        return surface
    message(f"simplifying {surface.n_triangles:,} triangles to {target_count:,}")
    points, triangles = fast_simplification.simplify(
        surface.points.copy(), surface.triangles.copy(), target_count=target_count
    )
    return TriMesh(points, triangles)


def _fill(surface: TriMesh, length: float, message: Messages) -> tuple[np.ndarray, np.ndarray]:
    """Points and tets from fTetWild."""
    message(f"tetrahedralizing {surface.n_triangles:,} triangles with edges of {length:.3g} m")
    with TemporaryDirectory(prefix="supple_") as folder:
        source, target = Path(folder) / "surface.npz", Path(folder) / "tets.npz"
        np.savez(
            source,
            points=surface.points,
            triangles=surface.triangles,
            edge_length=length,
            envelope=ENVELOPE * length / surface.diagonal,
        )
        output = _run(
            [sys.executable, Path(__file__).with_name("tetwild.py"), source, target], folder, message
        )
        if not target.exists():
            raise MeshError(
                "The surface could not be tetrahedralized; fTetWild ended with: "
                f"{output or 'nothing output'}. "
                "Another edge_length may help, or repairing the surface, for example with MeshLab."
            )
        with np.load(target) as result:
            points, tets = result["points"], result["tets"]
    if len(tets) == 0:
        raise MeshError(
            f"No tetrahedra fit into the surface; its parts are thinner than edge_length = {length:.3g} m. "
            "Choose a smaller one."
        )
    return points, tets


def _run(command: list[str | Path], folder: str, message: Messages) -> str:
    """Run fTetWild in a folder, log its passes and sizes, and return its last line of output."""
    line, number = "", "0"
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            for text in process.stdout or ():
                line = text.strip() or line
                if match := re.search(r"/ pass (\d+) /", line):
                    number = match[1]
                elif match := re.fullmatch(r"#t = (\d+)", line):
                    message(
                        f"tetrahedralizing, pass {number}: {int(match[1]):,} tetrahedra with those outside"
                    )
        except BaseException:
            process.kill()
            raise
    return line if process.returncode >= 0 else f"{line} (signal {-process.returncode})"


def _compare_volumes(surface: TriMesh, mesh: TetMesh) -> None:
    part = mesh.volume / abs(surface.enclosed_volume)
    if not 0.8 < part < 1.2:
        log.warning(
            "The tetrahedra fill %.0f %% of the volume inside the surface. Thin parts need a "
            "smaller edge_length; self-intersections are counted twice in the volume.",
            100 * part,
        )


def _fingerprint(surface: TriMesh, length: float) -> str:
    settings = (length, EDGE_RATIO, ENVELOPE, version("pytetwild"), version("fast-simplification"))
    digest = hashlib.sha256(repr(settings).encode())
    digest.update(surface.points.tobytes())
    digest.update(surface.triangles.tobytes())
    return digest.hexdigest()[:32]


def _load_cached(path: Path) -> tuple[np.ndarray, np.ndarray] | None:
    """Load cached tetrahedra; None if missing or unreadable."""
    try:
        with path.open("rb") as file, np.load(file) as saved:
            return saved["points"], saved["tets"]
    except Exception:  # a damaged file counts as missing
        return None


def _store_cached(path: Path, result: tuple[np.ndarray, np.ndarray]) -> None:
    temporary = path.with_name(f".{os.getpid()}_{path.name}")
    try:
        make_private_folder(path.parent)
        try:
            np.savez(temporary, points=result[0], tets=result[1])
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        log.warning("The tetrahedra could not be saved in the cache %s (%s).", path.parent, error)
