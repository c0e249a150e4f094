"""What can be changed while a scene is live."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from supple.asking import method_of
from supple.compute import Compute
from supple.materials import MATERIALS, Isotropic
from supple.scene import SceneFile
from supple.solver_text import parse_solver
from supple.solvers import SOLVERS, Solver
from supple.solvers.options import kind_of, solver_label, typed_options
from supple.stop import DEFAULT_TOLERANCE

STIFFEST = {"float32": 1e30, "float64": 1e150}
"""Young's modulus [Pa] with whose forces each precision can reckon; so can it with its inverse."""


@dataclass(frozen=True)
class Settings:
    """solvers: one, or two to compare; materials: one for each body; sweeps: iterations per update; dt [s]
    from update to update; tolerance: imbalance at which a quasistatic scene rests, 0 for never; device: cpu
    or cuda."""

    solvers: tuple[Solver, ...]
    materials: tuple[Isotropic, ...]
    dt: float
    quasistatic: bool = True
    sweeps: int = 5
    precision: str = "float32"
    tolerance: float = DEFAULT_TOLERANCE
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not 1 <= len(self.solvers) <= 2:
            raise ValueError(f"one solver is shown, or two are compared; got {len(self.solvers)}")
        if not (0 < self.dt < math.inf):
            raise ValueError(f"the time step must be positive and finite [s], got {self.dt:g}")
        if self.sweeps < 1:
            raise ValueError(f"sweeps per update must be at least 1, got {self.sweeps}")
        if not 0 <= self.tolerance < 1:
            raise ValueError(f"the tolerance must lie between 0 and 1, got {self.tolerance:g}")
        self.compute.refuse_absent()
        for material in self.materials:
            _check_stiffness(material, self.precision)

    @property
    def compute(self) -> Compute:
        """Where and how to compute, on all cores."""
        return Compute(self.device, self.precision)

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each solver, with the options that are not the default."""
        return tuple(solver_label(solver) for solver in self.solvers)

    @property
    def physics(self) -> tuple[Any, ...]:
        """What a model is built from. Of materials also the class: their tuples are equal where their Lamé
        parameters are."""
        return self.quasistatic, tuple((type(m), m.mu, m.lam) for m in self.materials)


def file_settings(file: SceneFile) -> Settings:
    """What a scene file asks for. Precision is float32, which is twice as fast."""
    tolerance = file.stop.tolerance
    return Settings(
        solvers=(method_of(None, file),),
        materials=tuple(body.material for body in file.scene.bodies),
        dt=file.scene.dt / (1 if file.scene.quasistatic else file.scene.substeps),
        quasistatic=file.scene.quasistatic,
        tolerance=Settings.tolerance if tolerance is None else tolerance,
    )


def _check_stiffness(material: Isotropic, precision: str) -> None:
    low, high = 1 / STIFFEST[precision], STIFFEST[precision]
    young = 2 * material.mu * (1 + material.poisson)  # which neither over- nor underflows
    for value in (np.min(young), np.max(young)):
        if not 0.999 * low <= value <= 1.001 * high:
            raise ValueError(
                f"Young's modulus must lie between {low:.0e} and {high:.0e} Pa in {precision}, got {value:g}"
            )


def accelerations(method: str) -> tuple[str, ...]:
    """The accelerations that a solver offers."""
    return ("none", *SOLVERS[method].parts.get("acceleration", ()))


def chosen_acceleration(solver: Solver) -> str:
    """That of a solver, among those that it offers."""
    return kind_of(getattr(solver, "acceleration", None))


def make_solver(method: str, acceleration: str, options: str = "") -> Solver:
    """A solver from what a user chose; options such as "omega=1.5 rho=0.9", which may wait for their
    acceleration."""
    words = options.replace(",", " ").split()
    if accelerations(method) != ("none",):
        words.insert(0, f"acceleration={acceleration}")
    return parse_solver(":".join([method, *words]), idle=True)


def options_text(solver: Solver) -> str:
    """The changed options of a solver and its acceleration, as they are typed."""
    return " ".join(f"{name}={value}" for name, value in typed_options(solver).items())


def make_material(name: str, young: str, poisson: float) -> Isotropic:
    """A material from what a user chose and typed."""
    return MATERIALS[name](young=typed_number(young, "Young's modulus E [Pa]"), poisson=poisson)


def elasticity(material: Isotropic) -> tuple[Any, Any]:
    """E [Pa] and ν as they were given: the shortest numbers that make these Lamé parameters, from which E and
    ν are computed with rounding. Arrays, one entry per element, are left as they are."""
    young, poisson = material.young, material.poisson
    if np.ndim(young):
        return young, poisson
    digits = range(1, 18)
    for i, j in sorted(product(digits, digits), key=sum):
        short = float(f"{young:.{i}g}"), min(float(f"{poisson:.{j}g}"), math.nextafter(0.5, 0))
        if tuple(type(material)(young=short[0], poisson=short[1])) == tuple(material):
            return short
    return young, poisson


def material_name(material: Isotropic) -> str:
    return next(name for name, kind in MATERIALS.items() if kind is type(material))


def typed_number(text: str, what: str) -> float:
    """The finite number that a user typed."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a number such as 1e5 or 0.01, got {text!r}")
    return number
