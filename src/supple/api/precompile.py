"""Ahead-of-time compilation of kernels in several processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from time import perf_counter

import numpy as np

from supple.api.simulate import equilibrium, simulate
from supple.config.backend import Backend
from supple.kernels import default_threads
from supple.materials import MATERIALS
from supple.meshes import block
from supple.scene import Scene
from supple.solvers import Solver


@dataclass(frozen=True)
class CompiledKernels:
    """Compilation time of one material.

    Attributes:
        material: Name of the material.
        precision: "float32" or "float64".
        seconds: Time for all kernels [s], nearly zero if they were cached.
    """

    material: str
    precision: str
    seconds: float


def precompile(
    materials: Sequence[str],
    solvers: Sequence[Solver],
    precisions: Sequence[str],
    device: str = "cpu",
    workers: int | None = None,
) -> Iterator[CompiledKernels]:
    """Compile the kernels for equilibria and motions of pinned bodies under gravity.

    Scenes with attachments need further kernels.

    Args:
        materials: Names of materials.
        solvers: Solvers.
        precisions: Names of precisions.
        device: "cpu" or "cuda".
        workers: Largest number of processes, by default the number of threads.

    Yields:
        Compilation time of each material and precision, as soon as it is known.
    """
    tasks = list(product(materials, precisions))
    processes = min(len(tasks), workers or default_threads())
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(_compile, *task, tuple(solvers), device) for task in tasks]
        for ready in as_completed(waiting):
            yield ready.result()


def _compile(material: str, precision: str, solvers: tuple[Solver, ...], device: str) -> CompiledKernels:
    """Compile by solving small problems, in a worker process."""
    began = perf_counter()
    scene = Scene(gravity=(0, -1, 0))
    body = scene.add_solid(block(2), MATERIALS[material].example(), density=1)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    bent = body.points + 0.1 * np.square(body.points[:, :1]) * [
        0,
        1,
        0,
    ]  # bent, so that elements rotate in the steps
    for solver in (phase for one in solvers for phase in one.phases()):
        if precision not in solver.precisions or device not in solver.devices:
            continue
        backend = Backend(device, precision, threads=1)
        equilibrium(scene, solver=solver, initial=bent, max_iterations=30, backend=backend)
        motion = simulate(
            scene, solver=solver, dt=0.01, frames=2, quasistatic=False, max_iterations=30, backend=backend
        )
        for _ in motion:
            pass
    return CompiledKernels(material, precision, perf_counter() - began)
