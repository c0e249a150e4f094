"""Time of tetrahedralization, embedding and export.

    python benchmarks/files.py     # a minute on two cores

Results go to benchmarks/results/files.json with the machine they were measured on. It needs armadillo.obj in
../shared/meshes or $SUPPLE_DATA, and all extras for files: pip install 'supple[tetrahedralize,usd,zarr]'.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from platformdirs import user_cache_path

import supple
from supple.io import FORMATS, machine, versions
from supple.io.results import to_json

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("SUPPLE_DATA", ROOT.parent / "shared" / "meshes"))
RESULTS = Path(__file__).parent / "results" / "files.json"
ARMADILLO = DATA / "armadillo.obj"


def main() -> None:
    measurements: dict[str, Any] = {"machine": machine(), "versions": versions()}
    measurements["armadillo by one command"] = one_command()
    measurements["embedding"] = embedding()
    measurements["seconds per frame of 32,768 vertices"] = formats()
    RESULTS.write_text(to_json(measurements) + "\n")
    print(json.dumps(measurements, indent=2))


def one_command() -> dict[str, Any]:
    """supple run scenes/armadillo_drop.toml without cached meshes, and again; kernels are compiled."""
    warm_up = supple.Scene(quasistatic=False)
    warm_up.add_solid(supple.block(4), supple.StableNeoHookean(young=1e4, poisson=0.4))
    next(supple.simulate(warm_up, solver=supple.PBNG(acceleration="chebyshev"), tolerance=1e-3, frames=1))
    scene = ROOT / "scenes" / "armadillo_drop.toml"
    with TemporaryDirectory() as folder:
        kernels = user_cache_path("supple") / "kernels"
        cache = Path(folder) / "cache" / "supple"
        cache.mkdir(parents=True)
        (cache / "kernels").symlink_to(kernels)
        environment = {**os.environ, "SUPPLE_DATA": str(DATA), "XDG_CACHE_HOME": str(cache.parent)}
        options = ["--output", f"{folder}/results", "--overwrite", "--no-picture", "--no-film", "--quiet"]

        def run() -> None:
            command = [str(Path(sys.executable).with_name("supple")), "run", str(scene), *options]
            subprocess.run(command, env=environment, check=True)

        return {"first_seconds": seconds(run), "second_seconds": seconds(run)}


def embedding() -> dict[str, Any]:
    """A surface of 173K vertices, four armadillos in one, on about 5K tets."""
    surface = supple.meshes.load_surface(ARMADILLO)
    mesh = supple.meshes.tetrahedralize(surface, 0.07)
    steps = 1e-3 * np.arange(4)[:, None, None]
    triangles = surface.triangles + surface.n_vertices * np.arange(4)[:, None, None]
    four = supple.TriMesh((surface.points + steps).reshape(-1, 3), triangles.reshape(-1, 3))
    embedded = supple.embed(four, mesh)
    return {
        "vertices": four.n_vertices,
        "tets": mesh.n_tets,
        "outside": int(embedded.outside.sum()),
        "setup_seconds": seconds(lambda: supple.embed(four, mesh)),
        "deform_seconds": seconds(lambda: embedded.deform(mesh.points), 10),
    }


def formats(frames: int = 10) -> dict[str, float]:
    scene = supple.Scene()
    body = scene.add_solid(supple.block(31), supple.Corotated(young=1e4, poisson=0.3))
    shapes = [body.points * (1 + index / 100) for index in range(frames)]
    with TemporaryDirectory() as folder:
        return {
            name: seconds(lambda name=name: supple.io.save_frames(scene, shapes, name, folder)) / frames
            for name in FORMATS
        }


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """Minimum of several times."""
    times = []
    for _ in range(repeats):
        began = perf_counter()
        work()
        times.append(perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
