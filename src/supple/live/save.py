"""Export of a live scene: a scene file that reproduces its current state, and pictures."""

from __future__ import annotations

import math
import os
import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from supple.live.movable_pins import PinSet
from supple.live.settings import Settings, file_settings, short_parameters
from supple.live.simulation import Simulation
from supple.live.snapshot import Snapshot
from supple.materials import Material, Prestrained, is_per_element, material_name
from supple.scene import SceneFile
from supple.scene.files.file_paths import resolve_path
from supple.solvers.options import changed_options

Table = dict[str, Any]


def save_scene(simulation: Simulation, folder: Path) -> Path:
    """Write a scene file with the current settings, and an NPZ file with initial positions and velocities.

    Pins and loads keep their current values. If two solvers are compared, the first one is saved.

    Args:
        simulation: The simulation.
        folder: Folder to write to.

    Returns:
        Path of the scene file.

    Raises:
        ValueError: The scene has no file, or its pins contradict each other.
    """
    import tomli_w

    if simulation.file.path == Path():
        raise ValueError(
            "only scenes loaded from a file can be saved as scene files; this one was created in Python"
        )
    simulation.pins.prescribed(simulation.time, when="now")
    path = free_path(folder, simulation.file.path.stem, ".toml")
    state, track = path.with_suffix(".npz"), simulation.tracks[0]
    table = scene_table(simulation, folder)
    table["initial"] = {"file": state.name}
    np.savez(state, positions=track.positions, velocities=track.velocities)
    path.write_text(tomli_w.dumps(table), encoding="utf-8")
    return path


def save_pictures(
    snapshot: Snapshot, file: SceneFile, folder: Path, field: str, theme: str, toward: np.ndarray
) -> list[Path]:
    """Draw the shape of each solver into PNG files.

    Args:
        snapshot: State to draw.
        file: Scene of the session.
        folder: Folder to write to.
        field: Field that determines the colors.
        theme: Name of the theme.
        toward: (3,) direction from the scene to the camera.

    Returns:
        Paths of the files.
    """
    from supple.view import picture
    from supple.view.picture import Shape

    x, y, z = toward / np.linalg.norm(toward)
    angles = math.degrees(math.atan2(x, z)), math.degrees(math.asin(np.clip(y, -0.999, 0.999)))
    paths = []
    for shape in snapshot.shapes:
        paths.append(free_path(folder, file.path.stem or file.title, ".png"))
        caption = (
            f"{shape.label} · {shape.iterations:,} iterations · relative residual "
            f"{shape.relative_residual:.1e}"
        )
        drawn = Shape(shape.positions, caption, shape.step)
        picture(
            paths[-1],
            shape.model,
            drawn,
            title=file.title,
            field=field,
            theme=theme,
            camera=angles,
            thickness=file.view.thickness,
            names=file.view.names,
        )
    return paths


def free_path(folder: Path, name: str, suffix: str) -> Path:
    """Path with the first unused number: twist_live_1.toml, twist_live_2.toml, ..."""
    number = 1
    while any(folder.glob(f"{name}_live_{number}.*")):
        number += 1
    return folder / f"{name}_live_{number}{suffix}"


def scene_table(simulation: Simulation, folder: Path) -> Table:
    """Tables of the scene file, updated to the current state.

    Args:
        simulation: The simulation.
        folder: Folder that file paths become relative to.
    """
    file, now = simulation.file, simulation.settings
    table = tomllib.loads(file.path.read_text(encoding="utf-8"))
    table |= {
        "quasistatic": now.quasistatic,
        "dt": now.dt,
        "solver": {"method": now.solvers[0].name, **changed_options(now.solvers[0])},
    }
    table.pop("substeps", None)  # dt is the length of a substep
    bodies = [*table.get("solid", []), *table.get("cloth", [])]
    for solid in bodies:
        for name in ("velocity", "angular_velocity"):
            solid.pop(name, None)
    if now.quasistatic:
        for name in ("damping", "integrator", "initial_guess"):
            table.pop(name, None)
    table["stop"] = table.get("stop", {}) | _limits(file, now)
    for written, body, material in zip(bodies, file.scene.bodies, now.materials, strict=True):
        key = {"solid": "material", "cloth": "membrane"}[body.kind]
        if material is not body.material:
            if key not in written:
                raise ValueError(
                    f"scene files cannot store another stiffness of {body.name}, which is a fabric; "
                    "reset its material before saving"
                )
            if isinstance(material, Prestrained):
                written |= _rest_deformation(material)
                material = material.base_material
            written[key] = {material_name(material): _parameters(written[key], material)}
    for pin, pins in zip(table.get("pin", []), simulation.pins.sets, strict=True):
        pin["motion"] = _frozen_motions(pin.get("motion", []), pins, simulation.time)
    load_tables = ("force", "body_force", "traction", "pressure", "cavity", "cable", "wind")
    loads = (load for kind in load_tables for load in table.get(kind, []))
    for load in loads:
        _freeze_ramp(load, "ramp", simulation.time)
    _freeze_ramp(table, "gravity_ramp", simulation.time)
    for written, velocity in zip(table.get("wind", []), now.winds, strict=False):
        written["velocity"] = list(velocity)
    if simulation.winds.offered and any(now.winds[0]) and not now.quasistatic:
        names = [body.name for body in simulation.winds.offered]
        table["wind"] = [{"velocity": list(now.winds[0]), "bodies": names}]
    if simulation.pins.grabs:
        table["pin"] = table.get("pin", []) + _grabbed_pins(simulation)
    return _relocate_paths(table, file.path.parent, folder)


def _limits(file: SceneFile, now: Settings) -> Table:
    """Termination criteria set on the page: tolerance and sweeps per update.

    For motions, the tolerance is included only if it was changed.
    """
    if not now.quasistatic and now.sweeps:
        return {"tolerance": False, "max_iterations": now.sweeps}
    chosen = now.quasistatic or now.tolerance != file_settings(file).tolerance
    return {"tolerance": now.tolerance} if now.tolerance and chosen else {}


def _parameters(table: Table, material: Material) -> Table:
    """Scene entries of a material; parameters that vary by element keep the field in the scene file."""
    (written,) = table.values()
    values = short_parameters(material)
    fields = {}
    for p in material.parameters:
        spelled = next((name for name in (p.name, *p.aliases) if name in written), None)
        if spelled is not None and is_per_element(values[p.name]):
            fields[p.name] = written[spelled]
    return {name: np.asarray(v).tolist() for name, v in values.items() if name not in fields} | fields


def _rest_deformation(material: Prestrained) -> Table:
    """Scene entries of prestrain; quantities that vary by element keep the field in the scene file."""
    values = {"swelling": material.swelling, "rest_deformation": material.given()["rest_deformation"]}
    return {
        name: np.asarray(v).tolist()
        for name, v in values.items()
        if not is_per_element(getattr(material, name))
    }


def _freeze_ramp(table: Table, name: str, time: float) -> None:
    """Freeze a ramp at its value at a time [s]."""
    if name in table:
        fraction = float(np.interp(time, table[name]["times"], table[name]["fractions"]))
        table[name] = {"times": [0.0], "fractions": [fraction]}


def _frozen_motions(motions: list[Table], pins: PinSet, time: float) -> list[Table]:
    """Constant motions that keep a pin at its current position."""
    if pins.placement_time is None:
        return [_freeze_motion(motion, time) for motion in motions]
    placement, center, at_once = pins.placement, pins.middle.tolist(), {"duration": 0.0}
    turn = placement.rotation.as_rotvec()
    angle = float(np.linalg.norm(turn))
    steps = [_freeze_motion(motion, pins.placement_time) for motion in motions]
    if not np.all(placement.stretch == 1):
        steps.append({"scale": {"factor": placement.stretch.tolist(), "center": center, **at_once}})
    if angle:
        axis = (turn / angle).tolist()
        steps.append({"rotate": {"axis": axis, "center": center, "angle": angle, **at_once}})
    steps.append({"translate": {"offset": (placement.position - pins.middle).tolist(), **at_once}})
    return steps


def _freeze_motion(motion: Table, time: float) -> Table:
    """Motion frozen at a time [s]."""
    ((kind, options),) = motion.items()
    if kind != "keyframes":
        start, duration = options.get("start_time", 0.0), options.get("duration", 1.0)
        done = float(time >= start + duration) if duration == 0 else (time - start) / duration
        return {"keyframes": {"times": [0.0], "motion": [motion], "fractions": [float(np.clip(done, 0, 1))]}}
    if "offsets" in options:
        rows = np.array(options["offsets"], float).T
        return {
            "keyframes": {
                "times": [0.0],
                "offsets": [[float(np.interp(time, options["times"], r)) for r in rows]],
            }
        }
    fraction = float(np.interp(time, options["times"], options["fractions"]))
    return {"keyframes": options | {"times": [0.0], "fractions": [fraction]}}


def _grabbed_pins(simulation: Simulation) -> list[Table]:
    """One pin per grabbed vertex, since their displacements differ."""
    pins, pin_conditions = [], simulation.pins
    target_by_vertex = dict(
        zip(pin_conditions.pinned.tolist(), pin_conditions.prescribed(simulation.time), strict=True)
    )
    for grab in pin_conditions.grabs:
        for vertex in grab.vertices.tolist():
            body = next(b for b in simulation.file.scene.bodies if vertex < b.vertices.stop)
            offset = (target_by_vertex[vertex] - simulation.model.rest[vertex]).tolist()
            pins.append(
                {
                    body.kind: body.name,
                    "where": {"vertices": [vertex - body.first]},
                    "motion": [{"translate": {"offset": offset, "duration": 0.0}}],
                }
            )
    return pins


def _relocate_paths(value: Any, old: Path, new: Path) -> Any:
    """Tables with file paths converted to another folder."""
    if isinstance(value, list):
        return [_relocate_paths(item, old, new) for item in value]
    if not isinstance(value, dict):
        return deepcopy(value)
    moved = {key: _relocate_paths(item, old, new) for key, item in value.items()}
    if isinstance(moved.get("file"), str):
        moved["file"] = _relocate_path(moved["file"], old, new)
    return moved


def _relocate_path(text: str, old: Path, new: Path) -> str:
    """File path relative to another folder; absolute paths that begin with ~ or $NAME are kept."""
    if text.startswith(("~", "$")) and resolve_path(Path(), text).is_absolute():
        return text
    return os.path.relpath(resolve_path(old, text).resolve(), new.resolve())
