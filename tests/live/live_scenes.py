"""Small scenes for the live page, and misbehaving solvers."""

import logging
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

import supple
from supple.live.settings import file_settings
from supple.live.simulation import Simulation
from supple.solvers import Solver

BLOCK = """
title = "Live block"
gravity = [0, 0, 0]
dt = 0.25

[[solid]]
name = "block"
mesh = { block = { cells = [4, 4, 4] } }
material = { corotated = { young = 1e4, poisson = 0.3 } }
density = 100

[[pin]]
where = { side = "x-" }

[[pin]]
where = { side = "x+" }
motion = [
  { rotate = { axis = [1, 0, 0], center = [1, 0.5, 0.5], angle = 0.4 } },
  { keyframes = { times = [0, 2], offsets = [[0, 0, 0], [0.4, 0, 0]] } },
]
"""

SWING = """
quasistatic = false
dt = 0.02

[[solid]]
mesh = { block = { cells = [3, 3, 3] } }
material = { stable_neo_hookean = { young = 1e4, poisson = 0.4 } }
density = 100

[[pin]]
where = { side = "x-" }
"""

LOOSE = SWING.split("[[pin]]")[0]
"""An unsupported block, which has no equilibrium."""


def scene_file(folder: Path, text: str = BLOCK) -> supple.scene.SceneFile:
    path = folder / "block.toml"
    path.write_text(text, encoding="utf-8")
    return supple.load_scene(path)


class _Run:
    check_every, patience, colors, rejected = 1, 10, 0, 0
    needs_monitoring = recovers_from_inversion = False

    def __init__(self, solver, problem):
        self.solver, self.problem, self.notes = solver, problem, []

    def observe(self, balance):
        return False

    def advance(self, iterations):
        self.solver.advance(self.problem)


@dataclass(frozen=True)
class Exploding(Solver):
    """Solver that makes all positions NaN."""

    name: ClassVar[str] = "exploding"
    iterations: int | None = None

    def begin(self, problem):
        return _Run(self, problem)

    def advance(self, problem):
        problem.u[:] = np.nan


@dataclass(frozen=True)
class Waiting(Solver):
    """Solver that announces compilation, and takes as long for an iteration as a test requests."""

    name: ClassVar[str] = "waiting"
    solves_systems: ClassVar[bool] = True  # so that its iterations can be interrupted one by one
    iterations: int | None = None
    go_on: ClassVar[threading.Event] = threading.Event()
    advances: ClassVar[list[int]] = []

    def begin(self, problem):
        return _Run(self, problem)

    def advance(self, problem):
        logging.getLogger("supple").info("compiling %s (once on this machine, then cached)", "sweeps")
        self.advances.append(1)
        self.go_on.wait(10)


def simulation(folder, text=BLOCK, **settings):
    file = scene_file(folder, text)
    made = Simulation(file, replace(file_settings(file), **settings))
    made.prepare()
    return made


def relax(live, updates=400):
    """Update until all forces balance."""
    for _ in range(updates):
        if live.needs_preparation:
            live.prepare()
        if live.skip_if_at_rest():
            return live.tracks[0].positions
        live.update()
    raise AssertionError(
        f"relative residual {live.tracks[0].balance.relative_residual} after {updates} updates"
    )
