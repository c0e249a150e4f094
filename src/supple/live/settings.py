"""Settings of a live scene."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

from supple.api.solver_syntax import parse_solver
from supple.config.backend import Backend
from supple.config.stop_criteria import DEFAULT_TOLERANCE, StopCriteria
from supple.materials import (
    MATERIALS,
    MEMBRANES,
    Material,
    is_per_element,
    material_name,
    membrane_materials,
)
from supple.scene import Scene, SceneFile
from supple.solve.call_options import resolve_solver, resolve_stop
from supple.solve.time_step_options import StepSchedule, make_schedule
from supple.solvers import SOLVERS, Solver
from supple.solvers.options import kind_of, solver_label, typed_options

Velocity = tuple[float, float, float]
"""Velocity [m/s]."""

DEFAULT_SWEEPS, DEFAULT_RIGID_BODY_SWEEPS = 5, 50
"""Default number of sweeps per update of a quasistatic scene, without and with rigid bodies; rigid bodies
move after every ten sweeps."""


@dataclass(frozen=True)
class Settings:
    """Settings of a live scene.

    Attributes:
        solvers: One solver, or two to compare.
        materials: Material of each body.
        dt: Time step per update [s].
        quasistatic: Solve for equilibria; False for motions.
        sweeps: Iterations per update; None uses the scene's and the solver's own, see `steps_of` and
            `sweeps_to_balance`.
        precision: "float32" or "float64".
        tolerance: Relative residual at which a quasistatic scene rests; 0 disables resting.
        device: "cpu" or "cuda".
        winds: Velocity of each wind in motions [m/s], see wind.py.
    """

    solvers: tuple[Solver, ...]
    materials: tuple[Material, ...]
    dt: float
    quasistatic: bool = True
    sweeps: int | None = None
    precision: str = "float32"
    tolerance: float = DEFAULT_TOLERANCE
    device: str = "cpu"
    winds: tuple[Velocity, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.solvers) <= 2:
            raise ValueError(f"the live page shows one or two solvers, got {len(self.solvers)}")
        if not (0 < self.dt < math.inf):
            raise ValueError(f"the time step must be positive and finite [s], got {self.dt:g}")
        if self.sweeps is not None and self.sweeps < 1:
            raise ValueError(f"sweeps per update must be at least 1, got {self.sweeps}")
        if not 0 <= self.tolerance < 1:
            raise ValueError(f"the tolerance must lie between 0 and 1, got {self.tolerance:g}")
        self.backend.check_available()

    @property
    def backend(self) -> Backend:
        """Device and precision, on all cores."""
        return Backend(self.device, self.precision)

    @property
    def labels(self) -> tuple[str, ...]:
        """Name of each solver with its non-default options."""
        return tuple(solver_label(solver) for solver in self.solvers)

    @property
    def physics(self) -> tuple[Any, ...]:
        """Settings that determine the model."""
        return self.quasistatic, self.materials


def file_settings(file: SceneFile) -> Settings:
    """Read settings from a scene file; selects float32 (twice as fast) if all bodies support it."""
    tolerance = file.stop.tolerance
    every = all(Settings.precision in body.precisions for body in file.scene.bodies)
    return Settings(
        solvers=(resolve_solver(None, file),),
        materials=tuple(body.material for body in file.scene.bodies),
        dt=file.scene.dt / (1 if file.scene.quasistatic else file.scene.substeps),
        quasistatic=file.scene.quasistatic,
        precision=Settings.precision if every else "float64",
        tolerance=Settings.tolerance if tolerance is None else float(tolerance),
    )


def steps_of(settings: Settings, solver: Solver, file: SceneFile) -> tuple[StepSchedule, StopCriteria]:
    """Step settings and termination criteria of a motion.

    They equal those of `supple run` for the file and solver, with the selected time step and, if set, the
    selected number of sweeps.
    """
    schedule = make_schedule(file.scene, solver, settings.dt, 1, None, False)
    chosen = None if settings.sweeps is None else StopCriteria(max_iterations=settings.sweeps)
    return schedule, chosen or resolve_stop({}, file, solver)


def sweeps_to_balance(settings: Settings, solver: Solver, scene: Scene) -> int:
    """Iterations per update of a quasistatic scene."""
    rigid = any(obstacle.mass is not None for obstacle in scene.obstacles)
    return settings.sweeps or solver.iterations or (DEFAULT_RIGID_BODY_SWEEPS if rigid else DEFAULT_SWEEPS)


def accelerations(method: str) -> tuple[str, ...]:
    """Accelerations available for a solver."""
    return ("none", *SOLVERS[method].parts.get("acceleration", ()))


def acceleration_name(solver: Solver) -> str:
    """Name of a solver's acceleration."""
    return kind_of(getattr(solver, "acceleration", None))


def make_solver(method: str, acceleration: str, options: str = "") -> Solver:
    """Construct a solver from user input.

    Args:
        method: Name of the solver.
        acceleration: Name of the acceleration.
        options: Further options such as "omega=1.5 rho=0.9"; options of an inactive acceleration are
            accepted.
    """
    words = options.replace(",", " ").split()
    if accelerations(method) != ("none",):
        words.insert(0, f"acceleration={acceleration}")
    return parse_solver(":".join([method, *words]), idle=True)


def options_text(solver: Solver) -> str:
    """Non-default options of a solver and its acceleration, as text input."""
    return " ".join(f"{name}={value}" for name, value in typed_options(solver).items())


def materials_for(body_types: set[str]) -> dict[str, type[Material]]:
    """Materials available for bodies of the given kinds, solid or cloth."""
    known = {"solid": MATERIALS, "cloth": membrane_materials()}
    return {name: kind for body in sorted(body_types) for name, kind in known[body].items()}


def change_material(before: Material, name: str, typed: dict[str, Any]) -> Material:
    """Material with parameters entered by the user.

    Parameters not entered keep their previous values; parameters absent from the previous material get their
    declared defaults.
    """
    kind = type(before) if name == material_name(before) else (MATERIALS | MEMBRANES)[name]
    values, known = {}, short_parameters(before)
    for p in kind.parameters:
        if p.name in typed:
            values[p.name] = (
                typed[p.name] if p.kind != "scalar" else parse_number(typed[p.name], p.description)
            )
        elif p in before.parameters:
            values[p.name] = known[p.name]
    return kind.example(**values)


def short_parameters(material: Material) -> dict[str, Any]:
    """Material parameters as entered by the user.

    Finds the shortest decimal numbers that reproduce the stored values exactly, since stored values contain
    rounding errors. Arrays with an entry per element are returned unchanged.
    """
    kind = type(material)
    values = material.given()
    if kind.stored == kind.parameters or any(map(is_per_element, material)):
        return values
    scalars = [p for p in kind.parameters if p.kind == "scalar"]
    digits = range(1, 18)
    digit_counts = (
        product(digits, repeat=len(scalars))
        if len(scalars) < 3
        else zip(*[digits] * len(scalars), strict=True)
    )
    for lengths in sorted(digit_counts, key=sum):
        short = {
            p.name: _round_digits(values[p.name], n, p.below) for p, n in zip(scalars, lengths, strict=True)
        }
        if kind(**(values | short)) == material:
            return values | short
    return values


def _round_digits(value: float, digits: int, below: float | None) -> float:
    short = float(f"{value:.{digits}g}")
    return short if below is None else min(short, math.nextafter(below, -math.inf))


def parse_number(text: str, what: str) -> float:
    """Parse a finite number.

    Raises:
        ValueError: The text is not a finite number.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a number such as 1e5 or 0.01, got {text!r}")
    return number
