"""Settings controls of the page, each group bound to part of the settings of a session."""

from __future__ import annotations

import math
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from supple.config.backend import PRECISIONS
from supple.live.movable_pins import Placement
from supple.live.session import Session
from supple.live.settings import (
    Settings,
    acceleration_name,
    accelerations,
    change_material,
    make_solver,
    options_text,
    parse_number,
    short_parameters,
)
from supple.live.snapshot import Handle, Snapshot, handle_at
from supple.live.wind import WindFolder
from supple.materials import MATERIALS, Material, Parameter, material_name
from supple.materials.parameters import SHAPES
from supple.solvers import SOLVERS, Solver

MODES = ("quasistatic", "dynamic")

MAX_SLIDER_SWEEPS = 50
"""Upper end of the slider for sweeps per update."""


class NumberField:
    """Text field for a number, such as 1e5.

    Untouched fields return the exact value. Text that already represents the value is left unchanged.
    """

    def __init__(self, gui: Any, label: str, hint: str) -> None:
        self._label = label
        self._value, self._text = math.nan, ""
        self.control = gui.add_text(label, "", hint=hint)

    def show(self, value: float) -> None:
        untouched = self.control.value == self._text and self._value == value
        if not (untouched or _describes(self.control.value, value)):
            self.control.value = f"{value:.6g}"
        self._value, self._text = value, self.control.value

    def read(self) -> float:
        text = self.control.value
        return self._value if text == self._text else parse_number(text, self._label)


class SolverChoice:
    """Solver controls: method, acceleration and options."""

    def __init__(self, gui: Any) -> None:
        self.method = gui.add_dropdown("Solver", tuple(SOLVERS))
        self.acceleration = gui.add_dropdown("Acceleration", accelerations(self.method.value))
        self.options = gui.add_text(
            "Options", "", hint="Further options, such as omega=1.5; `supple list solvers` lists all."
        )

    def show(self, solver: Solver) -> None:
        self.method.value = solver.name
        self.acceleration.options = accelerations(solver.name)
        self.acceleration.value = acceleration_name(solver)
        self.acceleration.disabled = len(self.acceleration.options) == 1
        if not self._describes(solver):
            self.options.value = options_text(solver)

    def _describes(self, solver: Solver) -> bool:
        """True if the entered text describes the given solver, in any notation."""
        try:
            return self._make_solver() == solver
        except ValueError:
            return False

    def _make_solver(self) -> Solver:
        return make_solver(self.method.value, self.acceleration.value, self.options.value)

    def read(self, before: Solver) -> Solver:
        """Solver from the controls; a different method starts with its default options."""
        method = self.method.value
        if method != before.name:
            return SOLVERS[method]()
        return self._make_solver()


class SolverFolder:
    """Controls for solver, sweeps per update, precision, tolerance and a second solver."""

    def __init__(self, gui: Any) -> None:
        with gui.add_folder("Solver"):
            self.first = SolverChoice(gui)
            self.sweeps = gui.add_slider(
                "Sweeps per update",
                0,
                MAX_SLIDER_SWEEPS,
                1,
                0,
                hint="0: the defaults of scene and solver.",
            )
            self.precision = gui.add_dropdown("Precision", PRECISIONS)
            self._tolerance = NumberField(
                gui, "Rest below", "Relative residual at which the solve stops; 0: never."
            )
        with gui.add_folder("Compare", expand_by_default=False):
            self.compare = gui.add_checkbox("Second solver", False, hint="Solver shown next to the first.")
            self.second = SolverChoice(gui)
        self.clicked = [
            self.first.method, self.first.acceleration, self.second.method, self.second.acceleration,
            self.sweeps, self.precision, self.compare,
        ]  # fmt: skip
        self.typed = [self.first.options, self.second.options, self._tolerance.control]
        self._second_solver: Solver = SOLVERS["xpbd"]()

    def show(self, settings: Settings) -> None:
        self.first.show(settings.solvers[0])
        self.compare.value = len(settings.solvers) > 1
        self._second_solver = settings.solvers[1] if self.compare.value else self._second_solver
        self.second.show(self._second_solver)
        sweeps = settings.sweeps or 0
        self.sweeps.max = max(MAX_SLIDER_SWEEPS, sweeps)
        self.sweeps.value, self.precision.value = sweeps, settings.precision
        self._tolerance.show(settings.tolerance)

    def read(self, before: Settings) -> Settings:
        self._second_solver = self.second.read(self._second_solver)
        solvers = (self.first.read(before.solvers[0]), *([self._second_solver] if self.compare.value else []))
        return replace(
            before,
            solvers=solvers,
            sweeps=self.sweeps.value or None,
            precision=self.precision.value,
            tolerance=self._tolerance.read(),
        )


class ParameterControl:
    """Control of a material parameter: a slider for parameters with a usual range, else a text field."""

    def __init__(self, gui: Any, parameter: Parameter) -> None:
        self.parameter = parameter
        self._last_value: Any = None
        hint = parameter.description
        if parameter.slider is None:
            self.control = gui.add_text(parameter.label, "", hint=hint)
        else:
            low, high = parameter.slider
            step = 10 ** math.floor(math.log10((high - low) / 500))
            first = parameter.example if parameter.default is None else parameter.default
            low, high = min(low, first), max(high, first)
            self.control = gui.add_slider(parameter.label, low, high, step, first, hint=hint)

    def show(self, material: Material, given: dict[str, Any]) -> None:
        self.control.visible = self.parameter in material.parameters
        if not self.control.visible:
            return
        value = given[self.parameter.name]
        if self.parameter.slider is not None:
            mean, (low, high) = float(np.mean(value)), self.parameter.slider
            self.control.min, self.control.max = min(low, mean), max(high, mean)
            self.control.value = mean
        elif not _describes(self.control.value, value):
            self.control.value = _format_numbers(value)
        self._last_value = self.control.value

    def read(self) -> dict[str, Any]:
        """Value entered since the last display, by name; empty if unchanged."""
        if self.control.value == self._last_value:
            return {}
        value = self.control.value
        if self.parameter.kind != "scalar":
            value = _numbers(value, self.parameter)
        return {self.parameter.name: value}


class MaterialFolder:
    """Material controls for a selected body."""

    def __init__(
        self, gui: Any, bodies: list[str], materials: Mapping[str, type[Material]] = MATERIALS
    ) -> None:
        self._bodies = bodies
        declared = dict.fromkeys(p for kind in materials.values() for p in kind.parameters)
        with gui.add_folder("Material"):
            self.body = gui.add_dropdown("Body", tuple(bodies), visible=len(bodies) > 1)
            self.name = gui.add_dropdown("Material", tuple(materials))
            self._parameters = [ParameterControl(gui, parameter) for parameter in declared]
        slides = [p.control for p in self._parameters if p.parameter.slider is not None]
        self.clicked = [self.name, *slides]
        self.typed = [p.control for p in self._parameters if p.parameter.slider is None]

    @property
    def number(self) -> int:
        return self._bodies.index(self.body.value)

    def show(self, settings: Settings) -> None:
        material = settings.materials[self.number]
        name = material_name(material)
        if name not in self.name.options:  # prestrained or user-defined material
            self.name.options = (*self.name.options, name)
        self.name.value = name
        given = short_parameters(material)
        for control in self._parameters:
            control.show(material, given)

    def read(self, before: Settings) -> Settings:
        material = before.materials[self.number]
        visible_controls = [
            control for control in self._parameters if control.parameter in material.parameters
        ]
        typed = {name: value for control in visible_controls for name, value in control.read().items()}
        if not typed and self.name.value == material_name(material):
            return before
        materials = list(before.materials)
        materials[self.number] = change_material(material, self.name.value, typed)
        return replace(before, materials=tuple(materials))


def _numbers(text: str, parameter: Parameter) -> Any:
    """Parse the components of a direction or tensor."""
    words = text.replace(",", " ").split()
    values = [parse_number(word, parameter.description) for word in words]
    shape = SHAPES[parameter.kind]
    if len(values) != math.prod(shape):
        raise ValueError(
            f"{parameter.name} must be {math.prod(shape)} numbers, got {text!r}: {parameter.description}"
        )
    return np.reshape(values, shape)


class TimeFolder:
    """Controls of inertia and time step."""

    def __init__(self, gui: Any) -> None:
        with gui.add_folder("Time"):
            self.kind = gui.add_dropdown("Kind", MODES, hint="Equilibria, or steps of a motion.")
            self._dt = NumberField(gui, "Time step [s]", "From update to update.")
        self.clicked, self.typed = [self.kind], [self._dt.control]

    def show(self, settings: Settings) -> None:
        self.kind.value = MODES[0 if settings.quasistatic else 1]
        self._dt.show(settings.dt)

    def read(self, before: Settings) -> Settings:
        return replace(before, quasistatic=self.kind.value == MODES[0], dt=self._dt.read())


def _describes(text: str, value: Any) -> bool:
    """True if a text represents a number, in any notation."""
    try:
        return bool(np.all(float(text) == value))
    except ValueError:
        return False


def _format_numbers(values: Any) -> str:
    """Number, value range, or direction and tensor components as text."""
    if isinstance(values, tuple) or np.shape(values) == (3, 3):
        return ", ".join(f"{value:.6g}" for value in np.ravel(values))
    if np.ndim(values) > 1:
        return "by element"
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:.16g}" if low == high else f"{low:.3g} to {high:.3g}"


Folder = SolverFolder | MaterialFolder | TimeFolder | WindFolder


class PinFolder:
    """Position, rotation and stretch of a pin set as numbers."""

    def __init__(self, gui: Any, session: Session) -> None:
        self._session = session
        self._last_command = 0
        names = tuple(handle.name for handle in session.snapshot.handles)
        with gui.add_folder("Pins", expand_by_default=bool(names), visible=bool(names)):
            self.handles = gui.add_checkbox("Show handles", True)
            self._set = gui.add_dropdown("Pin set", names or ("none",), visible=len(names) > 1)
            self._position = gui.add_vector3("Middle [m]", (0.0, 0.0, 0.0), step=0.001)
            self._turn = gui.add_vector3(
                "Turn [°]", (0.0, 0.0, 0.0), step=0.1, hint="About x, then y, then z."
            )
            self._stretch = [gui.add_slider(f"Stretch {axis}", 0.2, 3.0, 0.01, 1.0) for axis in "xyz"]
        self._names = names
        if names:
            self._show(session.snapshot.handles[0])
        self._set.on_update(lambda _: self._show(session.snapshot.handles[self._number]))
        for control in (self._position, self._turn, *self._stretch):
            control.on_update(self._apply_placement)

    @property
    def _number(self) -> int:
        return self._names.index(self._set.value)

    async def _apply_placement(self, event: Any) -> None:  # async callbacks run immediately and in order
        if event.client is None:
            return
        turn = Rotation.from_euler("xyz", self._turn.value, degrees=True)
        stretch = np.array([slider.value for slider in self._stretch])
        placement = Placement(np.array(self._position.value), turn, stretch)
        self._last_handle = handle_at(self._set.value, placement)
        self._last_command = self._session.place(self._number, placement)

    def follow(self, snapshot: Snapshot) -> None:
        """Show the current placement unless already displayed or commands are pending."""
        if not self._names or snapshot.executed < self._last_command:
            return
        handle = snapshot.handles[self._number]
        if not handle.is_close_to(self._last_handle):
            self._show(handle)

    def _show(self, handle: Handle) -> None:
        self._last_handle = handle
        turn = Rotation.from_quat(np.roll(handle.wxyz, -1)).as_euler("xyz", degrees=True)
        self._position.value = tuple(np.round(handle.position, 4).tolist())
        self._turn.value = tuple(np.round(turn, 2).tolist())
        for slider, factor in zip(self._stretch, handle.stretch, strict=True):
            slider.value = float(factor)


TYPING_DELAY = 0.7
"""Seconds without a keystroke after which typed text is applied."""


class Controls:
    """Settings panel of the page.

    Args:
        gui: User interface of viser.
        settings: Initial settings.
        bodies: Names of the bodies.
        on_change: Called with new settings; returns the number of the session's command.
        on_error: Called with a sentence about invalid values.
        materials: Selectable materials by name.
    """

    def __init__(
        self,
        gui: Any,
        settings: Settings,
        bodies: list[str],
        on_change: Callable[[Settings], int],
        on_error: Callable[[str], None],
        materials: Mapping[str, type[Material]] = MATERIALS,
    ) -> None:
        self._settings, self._on_change, self._on_error = settings, on_change, on_error
        self._lock, self._last_command = threading.RLock(), 0
        self._timer = threading.Timer(0, lambda: None)
        solver, material, time = SolverFolder(gui), MaterialFolder(gui, bodies, materials), TimeFolder(gui)
        winds = [WindFolder(gui, len(settings.winds))] if settings.winds else []
        self._folders: tuple[Folder, ...] = (solver, material, time, *winds)
        self.show(settings)
        for choice in (material.body, *(folder.which for folder in winds)):
            choice.on_update(_by_user(lambda: self.show(self._settings)))
        for folder in self._folders:
            for control in folder.clicked:
                control.on_update(_by_user(self._apply))
            for control in folder.typed:
                control.on_update(_by_user(self._apply_soon))

    def show(self, settings: Settings) -> None:
        with self._lock:
            self._settings = settings
            for folder in self._folders:
                folder.show(settings)

    def follow(self, snapshot: Snapshot) -> None:
        """Show settings changed outside of this panel, for example after a rollback.

        Snapshots that precede the last command of this panel are ignored, since they contain outdated
        settings.
        """
        with self._lock:
            if self._timer.is_alive() or snapshot.executed < self._last_command:
                return
            if snapshot.settings is not self._settings:
                self.show(snapshot.settings)

    def _apply(self) -> None:
        with self._lock:
            settings = self._settings
            try:
                for folder in self._folders:
                    settings = folder.read(settings)
            except ValueError as error:
                self._on_error(str(error))
                return
            self._last_command = self._on_change(settings)
            self.show(settings)

    def _apply_soon(self) -> None:
        """Apply the controls after a pause in typing."""
        self._timer.cancel()
        self._timer = threading.Timer(TYPING_DELAY, self._apply)
        self._timer.daemon = True
        self._timer.start()


def _by_user(action: Callable[[], None]) -> Callable[[Any], Awaitable[None]]:
    """Callback for user actions; values set by the page itself are ignored."""

    async def updated(event: Any) -> None:  # async callbacks run immediately and in order
        if event.client is not None:
            action()

    return updated
