"""Large contact scenes: intersections, their depth, and the cost of contact detection, into
results/contact_scenes.json.

    python benchmarks/contact_scenes.py ring --contact barrier --frames 80 --save runs
    python benchmarks/contact_scenes.py dropped_40 --full --contact barrier --minutes 8 --save runs
    python benchmarks/contact_scenes.py --check runs

The scenes are those of contact_cases.py, with a barrier, in weak contact and, where all are solids, on a
grid; all of them unless some are named. After every frame ipctk says whether surfaces intersect; where it is
not installed, --save keeps the frames, and --check looks at them elsewhere. `finding` is the part of a step's
time that detection, exchange of stencils and recoloring take; a step has 20 sweeps of PBNG, or --sweeps:
twice as fine meshes need four times as many to get as far. Results are written after every frame. A run
that ends early, or after so many --minutes, goes on from its last frame where it has a folder. Small sizes
for two cores; --full for those of the papers; --fine and --count in between.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from contact_cases import CASES, FULL, Size

import supple
from supple.collision.ccd.intersections import find_crossings
from supple.collision.narrow_phase.contact_pairs import Surfaces
from supple.contact.state.contact_report import ContactReport
from supple.contact.state.dynamic_term_updates import DynamicTerms
from supple.io.machine import machine
from supple.kernels import compilation, default_threads
from supple.problem import Problem
from supple.solve.grid_time_loop import GridTimeLoop
from supple.solve.time_loop import TimeLoop

RESULTS = Path(__file__).parent / "results" / "contact_scenes.json"
SWEEPS = 20


def intersects(scene: supple.Scene, positions: np.ndarray) -> bool | None:
    """True if surfaces intersect, None without ipctk."""
    if find_spec("ipctk") is None:
        return None
    from intersecting import intersects as by_ipctk

    return by_ipctk(scene, positions)


def depth_of(scene: supple.Scene, positions: np.ndarray) -> float:
    """Depth of a vertex in a body [m], if surfaces intersect."""
    triangles = np.concatenate([np.asarray(body.mesh.surface) + body.first for body in scene.bodies])
    body = np.repeat(np.arange(len(scene.bodies)), [len(body.points) for body in scene.bodies])
    flat = np.array([body.kind != "solid" for body in scene.bodies])
    rest = np.concatenate([body.points for body in scene.bodies])
    return max(
        (each.depth for each in find_crossings(Surfaces(triangles, body, rest, 0.0, flat), positions)),
        default=0.0,
    )


WATCHED: list[tuple[Any, str, str]] = [
    (DynamicTerms, "set_step_bounds", "finding"),
    (DynamicTerms, "_update", "finding"),
    (DynamicTerms, "limit_step", "finding"),
    (Problem, "refresh", "exchanging"),
    (TimeLoop, "advance", "frames"),
    (GridTimeLoop, "advance", "frames"),
]


@contextmanager
def stopwatch() -> Iterator[dict[str, float]]:
    """Seconds of contact detection (with exchange of stencils and recoloring) and of frames, without
    compilation."""
    spent = {"finding": 0.0, "exchanging": 0.0, "frames": 0.0}
    depth = 0

    def timed(function: Any, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal depth
            began = perf_counter() - compiled.seconds
            depth += name == "finding"
            try:
                return function(*given, **named)
            finally:
                depth -= name == "finding"
                if name != "finding" or depth == 0:
                    spent[name] += perf_counter() - compiled.seconds - began

        return call

    originals = [getattr(owner, method) for owner, method, _ in WATCHED]
    for (owner, method, name), function in zip(WATCHED, originals, strict=True):
        setattr(owner, method, timed(function, name))
    try:
        with compilation() as compiled:
            yield spent
    finally:
        for (owner, method, _), function in zip(WATCHED, originals, strict=True):
            setattr(owner, method, function)


@dataclass
class RunSummary:
    """Figures of a run after some frames; behind: distance of pins from their targets [m] with a barrier;
    unchecked: frames without a check by ipctk."""

    scene: str
    contact: str
    solver: str
    bodies: int
    vertices: int
    sweeps: int = SWEEPS
    frames: int = 0
    of_frames: int = 0
    elements: int = 0
    threads: int = 0
    seconds: float = 0.0
    setup_seconds: float = 0.0
    slowest_frame: float = 0.0
    finding: float = 0.0
    exchanging: float = 0.0
    most_contacts: int = 0
    deepest: float = 0.0
    deepest_in_obstacles: float = 0.0
    smallest_gap: float | None = None
    behind: float = 0.0
    frames_that_intersect: list[int] = field(default_factory=list)
    unchecked: list[int] = field(default_factory=list)
    lowest: float = 0.0
    inverted: int = 0

    def see(self, scene: supple.Scene, frame: supple.Frame) -> None:
        report = frame.report
        self.frames, self.elements, self.inverted = frame.index, frame.model.elements, report.inverted
        self.setup_seconds += report.setup_seconds
        self.slowest_frame = max(self.slowest_frame, report.seconds)
        self.lowest = float(frame.positions[:, 1].min())
        self.check_frame(frame.index, scene, frame.positions)
        contact = report.contact or ContactReport()
        if contact.bodies is not None:
            self.deepest = max(self.deepest, contact.bodies.max_penetration)
            self.most_contacts = max(self.most_contacts, contact.bodies.count)
            self.behind = contact.bodies.pin_lag or 0.0
            gaps = [self.smallest_gap, contact.bodies.min_gap]
            self.smallest_gap = min((gap for gap in gaps if gap is not None), default=None)
        if contact.obstacles is not None:
            self.deepest_in_obstacles = max(self.deepest_in_obstacles, contact.obstacles.max_penetration)

    def check_frame(self, index: int, scene: supple.Scene, positions: np.ndarray) -> None:
        """Whether surfaces intersect in a frame, and how deep."""
        crossed = intersects(scene, positions)
        if crossed is None:
            self.unchecked.append(index)
        elif crossed:
            self.frames_that_intersect.append(index)
            self.deepest = max(self.deepest, depth_of(scene, positions))


class Folder:
    """Folder of the frames of a run, its last state and its summary; None stores nothing."""

    def __init__(self, path: Path | None, every: int = 1) -> None:
        self.path, self._every = path, every
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)

    def last(self) -> tuple[supple.State | None, dict[str, Any]]:
        """The state that a run goes on from, and its summary, where it has been begun."""
        if self.path is None or not (self.path / "state.npz").exists():
            return None, {}
        with np.load(self.path / "state.npz") as saved:
            history = {name[8:]: saved[name] for name in saved if name.startswith("history ")}
            state = supple.State(saved["displacements"], saved["velocities"], history)
        return state, json.loads((self.path / "figures.json").read_text())

    def keep(self, frame: supple.Frame, run_summary: RunSummary) -> None:
        if self.path is None:
            return
        state = frame.state
        assert state is not None
        if frame.index % self._every == 0 or frame.index == run_summary.of_frames:
            np.savez_compressed(self.path / f"frame_{frame.index:04d}.npz", positions=frame.positions)
        history = {f"history {name}": values for name, values in state.history.items()}
        written = self.path / "state.new.npz"
        np.savez(written, displacements=state.displacements, velocities=state.velocities, **history)
        written.replace(self.path / "state.npz")
        (self.path / "figures.json").write_text(json.dumps(vars(run_summary), indent=2) + "\n")


def measure(name: str, contact: str, size: Size, options: argparse.Namespace) -> RunSummary:
    case = CASES[name]
    began = perf_counter()
    scene = case.make(contact, size)
    frames = options.frames or case.frames
    solver: Any = (
        supple.BPXPBD(zeta=0.5, iterations=options.sweeps)
        if contact == "grid"
        else supple.PBNG(iterations=options.sweeps)
    )
    folder = Folder(options.save and options.save / f"{name}_{contact}", options.save_every)
    state, known = folder.last()
    points = sum(len(body.points) for body in scene.bodies)
    run_summary = RunSummary(name, contact, solver.name, len(scene.bodies), points, options.sweeps)
    for key, value in known.items():
        setattr(run_summary, key, value)
    run_summary.of_frames, run_summary.threads = frames, options.threads or default_threads()
    print(
        f"{name}, {contact}: {points:,} vertices, frames {run_summary.frames + 1} to {frames}, "
        f"{run_summary.threads} threads, scene made in {perf_counter() - began:.1f} s",
        flush=True,
    )
    before = {key: getattr(run_summary, key) * run_summary.seconds for key in ("finding", "exchanging")}
    frames_before, frame, took, ended = run_summary.seconds, None, [], perf_counter()
    with stopwatch() as spent:
        moving = supple.simulate(
            scene, solver=solver, frames=frames, initial=state, first_frame=run_summary.frames + 1,
            device=options.device, precision=options.precision, threads=options.threads,
        )  # fmt: skip
        for frame in moving:
            run_summary.see(scene, frame)
            run_summary.seconds = frames_before + spent["frames"]
            for key, earlier in before.items():
                setattr(run_summary, key, (earlier + spent[key]) / max(run_summary.seconds, 1e-9))
            folder.keep(frame, run_summary)
            write(options, size, run_summary)
            took.append(perf_counter() - ended)
            say(run_summary, frame, took)
            ended = perf_counter()
            if not np.isfinite(frame.positions).all() or perf_counter() - began > 60 * options.minutes:
                break
    if options.pictures is not None and frame is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
        supple.render(frame, options.pictures / f"{name}_{contact}.png", field="body")
    return run_summary


def say(run_summary: RunSummary, frame: supple.Frame, seconds: list[float]) -> None:
    """Print one line for a frame with the remaining time, estimated from the last frames; the first frame of
    a run includes compilation and set-up."""
    pace = float(np.mean(seconds[1:][-5:] or seconds))
    left = pace * (run_summary.of_frames - frame.index)
    contact = frame.report.contact
    print(
        f"  frame {frame.index} of {run_summary.of_frames}: {seconds[-1]:.2f} s, "
        f"{contact.bodies.count if contact and contact.bodies else 0} contacts, "
        f"{len(run_summary.frames_that_intersect)} frames intersect, {len(run_summary.unchecked)} unchecked; "
        f"{left:.0f} s left at this pace",
        flush=True,
    )


def write(options: argparse.Namespace, size: Size, run_summary: RunSummary) -> None:
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    how = "full" if size.full else "small" if size == Size() else f"fine {size.fine}, count {size.count}"
    key = f"{how}, {options.device}, {options.precision}"
    section = stored.setdefault(key, {})
    section["machine"] = machine()
    section[f"{run_summary.scene}, {run_summary.contact}"] = vars(run_summary)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(stored, indent=2) + "\n")


def check(folder: Path) -> None:
    """Check all unchecked frames of the runs in a folder."""
    for path in sorted(folder.glob("*/figures.json")):
        saved = json.loads(path.read_text())
        size = json.loads((path.parent / "size.json").read_text())
        scene = CASES[saved["scene"]].make(saved["contact"], Size(**size))
        run_summary = RunSummary(**saved)
        unchecked, run_summary.unchecked = run_summary.unchecked, []
        for index in unchecked:
            kept_frame = path.parent / f"frame_{index:04d}.npz"
            if not kept_frame.exists():
                run_summary.unchecked.append(index)
                continue
            with np.load(kept_frame) as frame:
                run_summary.check_frame(index, scene, frame["positions"])
        path.write_text(json.dumps(vars(run_summary), indent=2) + "\n")
        print(json.dumps(vars(run_summary)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenes", nargs="*", help=f"of {', '.join(CASES)}; all of them unless given")
    parser.add_argument("--contact", nargs="*", choices=["barrier", "weak", "grid"])
    parser.add_argument("--full", action="store_true", help="at the papers' sizes")
    parser.add_argument("--fine", type=int, help="how many times finer than the smallest meshes")
    parser.add_argument("--count", type=int, help="of dropped objects")
    parser.add_argument("--frames", type=int)
    parser.add_argument("--sweeps", type=int, default=SWEEPS, help="of a step")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for each scene; then it ends")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float64")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--save", type=Path, help="a folder for frames, from which a run also goes on")
    parser.add_argument("--save-every", type=int, default=1, help="keep every so many-th frame only")
    parser.add_argument("--check", type=Path, help="a folder of saved runs to look at")
    parser.add_argument("--pictures", type=Path, help="a folder for pictures of the last frames")
    options = parser.parse_args()
    if options.check is not None:
        return check(options.check)
    if unknown := set(options.scenes) - set(CASES):
        parser.error(f"no scene {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    for name in options.scenes or CASES:
        fine = options.fine or (FULL[name] if options.full else 1)
        size = Size(fine, options.count, options.full)
        for contact in options.contact or CASES[name].contacts:
            if contact not in CASES[name].contacts:
                print(f"{name} is not for contact {contact}")
                continue
            if options.save is not None:
                folder = options.save / f"{name}_{contact}"
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "size.json").write_text(json.dumps(vars(size)))
            try:
                print(json.dumps(vars(measure(name, contact, size, options))))
            except (ValueError, OSError) as error:
                print(f"{name}, {contact}: refused: {error}")


if __name__ == "__main__":
    main()
