"""What the constraint-based methods do on the scenes of their papers: figures and plots.

    python benchmarks/family.py                     # everything: about half an hour on two cores
    python benchmarks/family.py falling beam speed  # some of it; the other figures stay as they are
    python benchmarks/family.py --list

Figures go to benchmarks/results/family.json, each with its machine and date, and plots to docs/images.
Only `speed` depends on the machine being quiet. The tetrahedral armadillo is made once from armadillo.obj
with pytetwild and fast-simplification (pip install pytetwild fast-simplification; ten minutes) and cached;
without them, and without data in ../shared/meshes or $SUPPLE_DATA, meshes that are missing are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from platformdirs import user_cache_path

import supple
from supple import BPXPBD, FPXPBD, GPBD, PBD, PBNG, XPBD, BlockXPBD, Newton
from supple.bench import sweep
from supple.io.machine import machine, versions
from supple.materials import MATERIALS
from supple.model import Model
from supple.ordering import colour_elements, colour_vertices
from supple.ordering.elements import colour_groups, element_groups
from supple.simulate import Stop, solve
from supple.solvers.elementwise import ElementOptions, ElementRun
from supple.solvers.problem import Problem
from supple.terms import WeakConstraints
from supple.view.plots import plot_axes, save
from supple.view.style import CURVES, DASHES, FADED, SMALL_SIZE

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "benchmarks" / "results" / "family.json"
IMAGES = REPOSITORY / "docs" / "images"
DATA = Path(os.environ.get("SUPPLE_DATA", REPOSITORY.parent / "shared" / "meshes"))

Figures = dict[str, Any]
BENCHMARKS: dict[str, Callable[[], Figures]] = {}


def benchmark(function: Callable[[], Figures]) -> Callable[[], Figures]:
    BENCHMARKS[function.__name__] = function
    return function


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# Scenes and measures


def clamped(
    mesh: supple.TetMesh, material: Any, density: float, dt: float, **scene_options: Any
) -> supple.Scene:
    """A body held at its least x."""
    scene = supple.Scene(quasistatic=False, dt=dt, **scene_options)
    body = scene.add_solid(mesh, material, density=density)
    low = mesh.points[:, 0].min()
    scene.pin(body.where(lambda X: X[:, 0] <= low + 1e-9))
    return scene


def placed(model: Model, dt: float, x: np.ndarray, v: np.ndarray | float, at: float = 0.0) -> Problem:
    problem = Problem(model, "float64")
    place(problem, dt, x, v, at)
    return problem


def place(problem: Problem, dt: float, x: np.ndarray, v: np.ndarray | float, at: float) -> None:
    problem.set_inertia(dt, x + dt * v)
    problem.positions = x + dt * v
    problem.prescribe(at)


def march(
    scene: supple.Scene, solver: ElementOptions, x: np.ndarray, steps: int, sweeps: int
) -> Iterator[np.ndarray]:
    """Positions after each step from x at rest in float32, whether or not the forces at x are finite."""
    problem = Problem(supple.build_model(scene), "float32")
    v = np.zeros_like(x)
    for k in range(1, steps + 1):
        place(problem, scene.dt, x, v, k * scene.dt)
        solver.begin(problem).advance(sweeps)
        v = (1 - getattr(solver, "damping", 0.0)) * (problem.positions - x) / scene.dt
        x = problem.positions
        yield x


def jacobians(model: Model, x: np.ndarray) -> np.ndarray:
    now, rest = x[model.tets], model.rest[model.tets]
    return np.linalg.det(now[:, 1:] - now[:, :1]) / np.linalg.det(rest[:, 1:] - rest[:, :1])


def volume(model: Model, x: np.ndarray) -> float:
    corners = x[model.tets]
    return float(np.linalg.det(corners[:, 1:] - corners[:, :1]).sum() / 6)


def elastic_energy(model: Model) -> Callable[[np.ndarray], float]:
    problem = Problem(model, "float64")

    def energy(x: np.ndarray) -> float:
        problem.positions = x
        return sum(float(problem._stored(elements).sum()) for elements in problem.elements)

    return energy


def at(values: Iterable[float], places: Iterable[int]) -> dict[str, float]:
    """The values at some places that exist, by place."""
    values = list(values)
    return {str(i): float(f"{values[i]:.4g}") for i in places if i < len(values)}


def curves(
    name: str,
    title: str,
    subtitle: str,
    lines: dict[str, tuple[str, Any, Any]],
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = True,
) -> None:
    """A plot of named lines (solver, x, y), solvers in their colours, variants in other dashes."""
    axes = plot_axes((1600, 1000), title, subtitle)
    used: dict[str, int] = {}
    for label, (solver, x, y) in lines.items():
        variant = used[solver] = used.get(solver, -1) + 1
        axes.plot(
            x,
            y,
            color=CURVES.get(solver, FADED),
            linestyle=DASHES[variant % len(DASHES)],
            linewidth=1.5,
            label=label,
        )
    axes.set_yscale("log" if log_y else "linear")
    axes.set_xscale("log" if log_x else "linear")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    left, bottom, _, height = axes.get_position().bounds
    axes.set_position((left, bottom, 0.77 - left, height))
    axes.legend(fontsize=SMALL_SIZE, frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    IMAGES.mkdir(parents=True, exist_ok=True)
    save(axes, IMAGES / f"family_{name}.png")


# PXPBD


def corotated_pair(model: Model, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(C, k V), both (elements, 2), of PXPBD eq. 5."""
    term: Any = model.terms[0]
    F = np.einsum("evi,evj->eij", x[term.vertices], term.gradients)
    s = np.linalg.svd(F, compute_uv=False)
    s[:, 2] *= np.sign(np.linalg.det(F))
    C = np.column_stack([np.sqrt(((s - 1) ** 2).sum(axis=1) + 1e-12), s.prod(axis=1) - 1])
    return C, term.volume[:, None] * [2 * term.material.mu, term.material.lam]


def secondary_residual(run: ElementRun) -> float:
    """|C + λ/(k V)| [PXPBD eq. 12]."""
    element = run._batches(0).element
    lam = np.empty((element.max() + 1, 2))
    lam[element[element >= 0]] = run.projections[0].multipliers.transpose(0, 2, 1)[element >= 0]
    C, k = corotated_pair(run.problem.model, run.problem.positions)
    return float(np.linalg.norm(C + lam / k))


@benchmark
def falling() -> Figures:
    """PXPBD Fig. 1 and 3: residuals within one representative step of a clamped block that falls."""
    figures: Figures = {
        "what": "|r| over |r before the step|; 4096 vertices, 16875 tets, E = 1000, nu = 0.3, density 10",
        "note": "the paper does not give the block's size; with its zeta = 0.5 a block of 1 m is unstable",
    }
    for size in (2.0, 1.0):
        material = supple.Corotated(young=1000, poisson=0.3)
        scene = clamped(supple.block(15, size=[size] * 3), material, 10, 0.01, gravity=(0, -9.8, 0))
        for frame in supple.simulate(scene, PBNG(acceleration="chebyshev"), tolerance=1e-6, frames=8):
            x, v = frame.positions, frame.velocities
        model = frame.model
        solvers = {
            "xpbd": XPBD(),
            "block_xpbd": BlockXPBD(),
            "bpxpbd, zeta = 0.5": BPXPBD(zeta=0.5),
            "bpxpbd": BPXPBD(),
            "fpxpbd": FPXPBD(),
            "fpxpbd, 3 Newton steps": FPXPBD(newton_steps=3),
            "gpbd": GPBD(),
            "pbng": PBNG(),
        }
        lines, table = {}, {}
        for name, solver in solvers.items():
            report = solve(placed(model, 0.01, x, v), solver, Stop(None, 200, None), record=True)
            residual = np.array(report.history.residual) / report.history.residual[0]
            lines[name] = (solver.name, range(len(residual)), residual)
            table[name] = {
                **at(residual, (1, 5, 10, 20, 40, 100, 200)),
                "outcome": report.outcome.name.lower(),
            }
            say(f"falling, {size:g} m, {name}: {table[name]}")
        problem = placed(model, 0.01, x, v)
        run = XPBD().begin(problem)
        secondary = []
        for _ in range(100):
            run.advance(1)
            secondary.append(secondary_residual(run))
        table["xpbd, secondary residual"] = at(np.array(secondary) / secondary[0], (0, 4, 9, 19, 39, 99))
        ratios = {
            name: {
                k: table["xpbd"][k] / max(table[name][k], 1e-30) for k in ("40", "200") if k in table[name]
            }
            for name in ("bpxpbd, zeta = 0.5", "bpxpbd", "fpxpbd")
        }
        figures[f"block of {size:g} m"] = {"residual": table, "times below xpbd": ratios}
        lines["xpbd, secondary"] = ("pbd", range(1, 101), np.array(secondary) / secondary[0])
        curves(
            f"falling_{size:g}m",
            "XPBD stagnates, PXPBD does not",
            f"one backward Euler step of a falling block of {size:g} m, 16,875 tets [PXPBD Fig. 1, 3]",
            lines,
            "iteration",
            "residual, relative to the start",
        )
    return figures


def squeezed(frames: int, cells: Any) -> supple.Scene:
    """Both ends of a neo-Hookean bar are pulled apart to 130 %, then pushed together to 60 %."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.01, frames=frames)
    material = supple.NeoHookean(young=1000, poisson=0.3)
    body = scene.add_solid(supple.bar(cells, (2.5, 1, 1)), material, density=10)
    times, fractions = (0, 0.003 * frames, 0.01 * frames), (0, 0.3, -0.4)
    for end, way in ((0.0, -1.25), (2.5, 1.25)):
        chosen = body.where(lambda X, end=end: np.abs(X[:, 0] - end) < 1e-9)
        scene.pin(chosen, motion=supple.Keyframes(supple.Translate((way, 0, 0)), times, fractions))
    return scene


@benchmark
def squeeze() -> Figures:
    """PXPBD section 5.4: XPBD with 100 iterations per step against FP-PXPBD with 10."""
    frames, cells = 60, (28, 11, 11)
    truth = [f.positions for f in supple.simulate(squeezed(frames, cells), Newton(), tolerance=1e-6)]
    say("squeeze: Newton is done")
    model = supple.build_model(squeezed(frames, cells))
    before = volume(model, model.rest)
    solvers = {
        "xpbd, 100 iterations": XPBD(iterations=100),
        "block_xpbd, 100 iterations": BlockXPBD(iterations=100),
        "fpxpbd, 10 iterations": FPXPBD(iterations=10),
        "bpxpbd, 10 iterations": BPXPBD(iterations=10),
        "gpbd, 10 iterations": GPBD(iterations=10),
    }
    table, lines = {"newton": {"volume at the end": volume(model, truth[-1]) / before}}, {}
    for name, solver in solvers.items():
        distance = []
        for frame, x in zip(supple.simulate(squeezed(frames, cells), solver), truth, strict=True):
            distance.append(float(np.sqrt(np.mean(np.sum((frame.positions - x) ** 2, axis=1)))))
        table[name] = {
            "rms distance from Newton [m]": at(distance, (17, 29, 44, 59)),
            "volume at the end": volume(model, frame.positions) / before,
        }
        lines[name] = (solver.name, range(1, frames + 1), distance)
        say(f"squeeze, {name}: {table[name]}")
    curves(
        "squeeze",
        "Ten iterations of FP-PXPBD beat a hundred of XPBD",
        f"a neo-Hookean bar of {len(model.tets):,} tets, stretched, then squeezed [PXPBD 5.4]",
        lines,
        "time step",
        "rms distance from Newton [m]",
    )
    return {
        "what": f"{model.vertices} vertices, {len(model.tets)} tets, E = 1000, nu = 0.3, dt = 0.01",
        **table,
    }


# BNH


def beam(dt: float, gravity: float = -9.81) -> supple.Scene:
    material = supple.NeoHookean(young=1e7, poisson=0.45)
    return clamped(supple.bar((30, 5, 5), (6, 1, 1)), material, 1000, dt, gravity=(0, gravity, 0))


@benchmark
def coupling() -> Figures:
    """BNH Fig. 5: elastic energy over substeps from the frame of highest energy, coupled and decoupled."""
    energy = elastic_energy(supple.build_model(beam(0.01)))
    solvers = {
        "xpbd": XPBD(iterations=1),
        "block_xpbd": BlockXPBD(iterations=1),
        "block_xpbd, clusters": BlockXPBD(iterations=1, ordering="clusters"),
    }
    first = supple.simulate(beam(0.01), XPBD(iterations=1), frames=100, substeps=30)
    start = max(first, key=lambda frame: energy(frame.positions))
    state = {"start": start.positions, "velocities": start.velocities}
    table: Figures = {"start": {"frame": start.index, "energy [J]": energy(start.positions)}}
    lines = {}
    for name, solver in solvers.items():
        found = [energy(f.positions) for f in supple.simulate(beam(0.01 / 30), solver, frames=100, **state)]
        table[name] = at(found, (0, 1, 4, 9, 19, 49, 99))
        lines[name] = (solver.name, range(1, 101), found)
        say(f"coupling, {name}: {table[name]}")
    curves(
        "coupling",
        "Coupled constraints lose the spurious energy",
        "a neo-Hookean beam of 3,750 tets, E = 1e7, nu = 0.45, substeps of 1/3000 s [BNH Fig. 5]",
        lines,
        "substep",
        "elastic energy [J]",
    )
    rest = {}
    for name, solver in solvers.items():
        (frame,) = supple.simulate(beam(0.01, 0.0), solver, frames=1, substeps=30)
        rest[name] = energy(frame.positions)
    one_frame: Figures = {}
    *_, smooth = supple.simulate(beam(0.01), PBNG(acceleration="chebyshev"), frames=60, tolerance=1e-4)
    state = {"start": smooth.positions, "velocities": smooth.velocities}
    for count in (5, 10, 20, 30, 50, 100, 200):
        for name, solver in solvers.items():
            (frame,) = supple.simulate(beam(0.01), solver, frames=1, substeps=count, **state)
            one_frame.setdefault(name, {})[str(count)] = energy(frame.positions)
    return {
        "what": "elastic energy [J] after so many substeps of 1/3000 s, 1 iteration each",
        "substeps from the frame of highest energy": table,
        "a beam without gravity, one frame of 30 substeps from rest": rest,
        "one frame of 0.01 s in so many substeps from a smooth state": one_frame,
    }


@benchmark
def scramble() -> Figures:
    """BNH Fig. 8: a beam whose vertices changed places at random, 30 substeps per 1/60 s."""
    scene = beam(1 / 60)
    model = supple.build_model(scene)
    x = np.where(model.free[:, None], np.random.default_rng(0).permutation(model.rest), model.rest)
    energy = elastic_energy(model)
    inverted, energies = [int(np.sum(jacobians(model, x) < 0))], [energy(x)]
    for frame in supple.simulate(scene, BlockXPBD(iterations=1), frames=200, substeps=30, start=x):
        inverted.append(frame.report.inverted)
        energies.append(energy(frame.positions))
    J = jacobians(model, frame.positions)
    return {
        "what": "3750 tets, E = 1e7, nu = 0.45, block_xpbd with 30 substeps of 1 iteration",
        "inverted after frame": at(inverted, (0, 1, 2, 5, 10, 20, 50, 100, 200)),
        "elastic energy [J] after frame": at(energies, (0, 1, 10, 50, 100, 200)),
        "volumes of elements at the end": [float(J.min()), float(J.max())],
    }


def armadillo() -> supple.TetMesh | None:
    """A tetrahedral armadillo, made once and kept in the user's cache."""
    path = user_cache_path("supple") / "benchmarks" / "armadillo.npz"
    source = DATA / "armadillo.obj"
    if (
        not path.is_file()
        and source.is_file()
        and find_spec("pytetwild")
        and find_spec("fast_simplification")
    ):
        import fast_simplification
        import pytetwild

        say("making the tetrahedral armadillo: about ten minutes, once")
        words = [line.split() for line in source.read_text().splitlines()]
        points = np.array([w[1:4] for w in words if w and w[0] == "v"], np.float32)
        faces = (
            np.array([[p.split("/")[0] for p in w[1:4]] for w in words if w and w[0] == "f"], np.int32) - 1
        )
        points, faces = fast_simplification.simplify(points, faces, target_reduction=0.85)
        points, tets = pytetwild.tetrahedralize(
            points.astype(float), faces.astype(np.int32), edge_length_fac=0.03, stop_energy=20
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, points=points, tets=tets)
    if not path.is_file():
        say("no armadillo: pip install pytetwild fast-simplification")
        return None
    with np.load(path) as saved:
        return supple.TetMesh(saved["points"], saved["tets"], repair=True)


@benchmark
def clusters() -> Figures:
    """BNH Table 2 and PBNG Table 1: numbers of colours."""
    meshes: dict[str, supple.TetMesh | None] = {
        "block of 10³ cells": supple.block(10),
        "block of 31³ cells": supple.block(31),
        "beam of 30 x 5 x 5 cells": supple.bar((30, 5, 5), (6, 1, 1)),
        "armadillo": armadillo(),
    }
    for name in ("bunny", "octopus-low"):
        path = DATA / f"{name}.mesh"
        meshes[name] = supple.load_mesh(path) if path.is_file() else None
    table = {}
    element_groups(np.arange(4)[None], 4, 2)  # compiles
    for name, mesh in meshes.items():
        if mesh is None:
            continue
        tets, n = np.asarray(mesh.tets), len(mesh.points)
        began = time.perf_counter()
        groups = element_groups(tets, n, 5)
        count = int(colour_groups(groups, tets, n).max()) + 1
        seconds = time.perf_counter() - began
        plain = int(colour_elements(tets, n).max()) + 1
        table[name] = {
            "vertices": n,
            "tets": len(tets),
            "node colours": int(colour_vertices([tets], np.arange(n), n).max()) + 1,
            "element colours": plain,
            "cluster colours": count,
            "part": round(count / plain, 3),
            "mean cluster size": round(float((groups >= 0).sum() / len(groups)), 3),
            "most tets at a vertex": int(np.bincount(tets.ravel()).max()),
            "seconds to cluster": round(seconds, 2),
        }
        say(f"clusters, {name}: {table[name]}")
    return {"what": "clusters of 5", **table}


# PBNG


@benchmark
def hanging() -> Figures:
    """PBNG Fig. 17: XPBD in pseudo-time on two blocks bound by springs of 1e8 N/m."""
    scene = supple.load_scene(REPOSITORY / "scenes" / "hanging_blocks.toml").scene
    solvers = {
        "pbng": PBNG(),
        "pbng, chebyshev": PBNG(acceleration="chebyshev"),
        "xpbd, 1 sweep per step": XPBD(sweeps_per_step=1),
        "xpbd, 10 sweeps": XPBD(sweeps_per_step=10),
        "xpbd flipped, 1 sweep": XPBD(sweeps_per_step=1, weak_first=True),
        "xpbd flipped, 10 sweeps": XPBD(sweeps_per_step=10, weak_first=True),
        "fpxpbd, 10 sweeps": FPXPBD(sweeps_per_step=10),
    }
    table, lines = {}, {}
    for name, solver in solvers.items():
        found = supple.equilibrium(scene, solver, tolerance=None, max_iterations=1000, history=True)
        (term,) = (t for t in found.model.terms if isinstance(t, WeakConstraints))
        C = np.einsum("ek,eki->ei", term.weights, found.positions[term.vertices]) - term.target
        imbalance = found.report.history.imbalance
        table[name] = {
            "imbalance": at(imbalance, (0, 1, 10, 100, 300, 500, 1000)),
            "largest gap [m]": float(np.linalg.norm(C, axis=1).max()),
            "largest stretch": float(largest_stretch(found.model, found.positions)),
        }
        every = getattr(
            solver, "sweeps_per_step", 1
        )  # at the ends of pseudo-time steps; within, it oscillates
        lines[name] = (solver.name, range(0, len(imbalance), every), imbalance[::every])
        say(f"hanging, {name}: {table[name]}")
    curves(
        "hanging",
        "Stiff attachments stall XPBD in pseudo-time",
        "two soft blocks of 5,000 tets each, bound by springs of 1e8 N/m [PBNG Fig. 17]",
        lines,
        "sweep",
        "imbalance",
    )
    return {"what": "scenes/hanging_blocks.toml, pseudo-time steps of 0.01 s, 1000 sweeps in all", **table}


def largest_stretch(model: Model, x: np.ndarray) -> float:
    rest, now = model.rest[model.tets], x[model.tets]
    F = np.linalg.solve(rest[:, 1:] - rest[:, :1], now[:, 1:] - now[:, :1])
    return float(np.linalg.svd(F, compute_uv=False).max())


@benchmark
def gravity() -> Figures:
    """PBNG Fig. 18: the sag of a bar under PBD and XPBD as sweeps per pseudo-time step are added."""
    scene = supple.load_scene(REPOSITORY / "scenes" / "bar_gravity.toml").scene
    model = supple.build_model(scene)
    tip = model.rest[:, 0] >= model.rest[:, 0].max() - 1e-9

    def sag(solver: Any, **stop: Any) -> float:
        found = supple.equilibrium(scene, solver, **stop)
        return -float(np.mean((found.positions - model.rest)[tip, 1]))

    table: Figures = {"pbng [m]": sag(PBNG(acceleration="chebyshev"), tolerance=1e-6)}
    counts = (1, 2, 5, 10, 20, 50, 100, 200)
    for name, make in {"pbd": PBD, "xpbd": XPBD}.items():
        table[f"{name} [m], sweeps per step"] = {
            str(k): sag(make(sweeps_per_step=k), tolerance=None, max_iterations=500 * k) for k in counts
        }
        say(f"gravity, {name}: {table[f'{name} [m], sweeps per step']}")
    lines = {
        name: (name, counts, list(table[f"{name} [m], sweeps per step"].values())) for name in ("pbd", "xpbd")
    }
    lines["equilibrium (pbng)"] = ("pbng", counts, [table["pbng [m]"]] * len(counts))
    curves(
        "gravity",
        "PBD loses gravity as sweeps are added",
        "sag of the end of a bar after 500 pseudo-time steps of 0.01 s [PBNG Fig. 18]",
        lines,
        "sweeps per step",
        "sag [m]",
        log_x=True,
    )
    return {"what": "scenes/bar_gravity.toml, sag of its end after 500 pseudo-time steps", **table}


# PBCM


@benchmark
def poisson() -> Figures:
    """PBCM section 6: width of the middle of a bar pulled to 120 %, PBD against the finite element answer."""
    table: Figures = {}
    for name in ("stvk", "log_neo_hookean"):
        for nu in (0.0, 0.15, 0.3, 0.45):
            scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.005, frames=400)
            material = MATERIALS[name](young=1e4, poisson=nu)
            body = scene.add_solid(supple.bar((24, 4, 4), (6, 1, 1)), material, density=100)
            scene.pin(body.where(lambda X: X[:, 0] <= 0))
            pull = supple.Translate((1.2, 0, 0), duration=0.5)
            scene.pin(body.where(lambda X: X[:, 0] >= 6), motion=pull)
            *_, last = supple.simulate(scene, PBD(iterations=20, damping=0.1))
            truth = supple.equilibrium(scene, PBNG(acceleration="chebyshev"), tolerance=1e-5)
            middle = np.abs(truth.model.rest[:, 0] - 3) < 1e-9
            width = [float(np.mean(np.ptp(r.positions[middle, 1:], axis=0))) for r in (last, truth)]
            speed = float(np.abs(last.velocities).max())
            table[f"{name}, nu = {nu:g}"] = {"pbd": width[0], "fem": width[1], "pbd speed left [m/s]": speed}
            say(f"poisson, {name}, {nu}: {width}")
    return {"what": "width [m] of a bar 1 m wide; PBD with 20 iterations per step of 5 ms", **table}


# GPBD

STEPS = 500
"""Time steps of the stress tests; the paper does 2000."""

TABLE_5 = {
    "stretch": (15, {0.45: ((3, 2), (3, 3)), 0.49: ((2, 3), (3, 5)), 0.495: ((2, 3), (3, 5)),
                     0.499: ((3, 5), (3, 5)), 0.4995: (None, (3, 5))}),
    "compress": (20, {0.45: ((2, 3), (2, 5)), 0.49: ((2, 3), (2, 7)), 0.495: ((2, 3), (2, 10)),
                      0.499: ((2, 5), (8, 10)), 0.4995: ((2, 8), (20, 10))}),
    "twist": (15, {0.45: ((2, 1), (2, 2)), 0.49: ((2, 1), (2, 2)), 0.495: ((2, 2), (2, 2)),
                   0.499: ((2, 2), (2, 5)), 0.4995: ((2, 3), (2, 5))}),
}  # fmt: skip
"""Cells along an edge, and for each Poisson's ratio (GPBD iterations, Newton steps) of neo-Hookean without
and with the logarithmic barrier; None where the paper found it unstable."""


def cube(material: Any, motion: str | None, cells: int, dt: float) -> supple.Scene:
    """A unit cube of density 1000 whose ends are moved by a third of the steps each way, within 300 steps."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=dt)
    body = scene.add_solid(supple.block(cells), material, density=1000)
    for end, sign in ((0.0, -1.0), (1.0, 1.0)):
        moves = {
            "stretch": supple.Translate((0.5 * sign, 0, 0), duration=300 * dt),
            "compress": supple.Translate((-0.25 * sign, 0, 0), duration=300 * dt),
            "twist": supple.Rotate((1, 0, 0), (0, 0.5, 0.5), sign * np.pi / 2, duration=300 * dt),
        }
        if motion is not None:
            chosen = body.where(lambda X, end=end: np.abs(X[:, 0] - end) < 1e-9)
            scene.pin(chosen, motion=moves[motion])
    return scene


def stress_test(motion: str, cells: int, name: str, nu: float, sweeps: int, newton: int) -> Figures:
    scene = cube(MATERIALS[name](young=1e5, poisson=nu), motion, cells, 0.001)
    model = supple.build_model(scene)
    began, last, fastest, inverted, step = time.perf_counter(), model.rest, 0.0, 0, 0
    for step, x in enumerate(march(scene, GPBD(newton_steps=newton), model.rest, STEPS, sweeps), 1):
        if not np.isfinite(x).all():
            break
        speed = float(np.abs(x - last).max()) / scene.dt
        fastest, last = max(fastest, speed), x
        if step % 50 == 0:
            inverted = max(inverted, int(np.sum(jacobians(model, x) <= 0)))
    J = jacobians(model, last)
    return {
        "iterations": [sweeps, newton],
        "steps done": step,
        "bounded": bool(step == STEPS and np.isfinite(last).all() and speed < 20),
        "fastest vertex [m/s]": round(fastest, 2),
        "fastest vertex at the end [m/s]": round(speed, 2),
        "most elements inverted": inverted,
        "volumes of elements at the end": [round(float(J.min()), 3), round(float(J.max()), 3)],
        "volume of the cube at the end": round(volume(model, last), 4),
        "seconds": round(time.perf_counter() - began, 1),
    }


@benchmark
def stress() -> Figures:
    """GPBD Table 5: cubes stretched, compressed and twisted with the paper's iterations and dt = 0.001."""
    table: Figures = {}
    for motion, (cells, rows) in TABLE_5.items():
        for nu, counts in rows.items():
            for name, count in zip(("neo_hookean", "log_neo_hookean"), counts, strict=True):
                label = f"{motion}, {name}, nu = {nu:g}"
                if count is not None:
                    table[label] = stress_test(motion, cells, name, nu, *count)
                    say(f"stress, {label}: {table[label]}")
    return {
        "what": f"unit cubes, density 1000, {STEPS} steps of 0.001 s, the motion in the first 300; float32",
        "bounded": "all steps finite, and no vertex faster than 20 m/s at the end",
        "most elements inverted": "seen at every 50th step; only the logarithmic barrier forbids it",
        **table,
    }


@benchmark
def recovery() -> Figures:
    """GPBD Table 5, first rows: flattened and randomised cubes with the logarithmic barrier, dt = 0.01."""
    table: Figures = {}
    for nu in (0.45, 0.4995):
        for start, newton in (("flattened", 6), ("randomised", 8)):
            for sweep_kind, omega in (("jacobi", 1.0), ("jacobi", 1.5), ("gauss_seidel", 1.0)):
                scene = cube(supple.LogNeoHookean(young=1e5, poisson=nu), None, 10, 0.01)
                model = supple.build_model(scene)
                random = np.random.default_rng(0)
                x = model.rest * [1, 0, 1] if start == "flattened" else random.uniform(0, 1, model.rest.shape)
                solver = GPBD(newton_steps=newton, sweep=sweep_kind, omega=omega)
                inverted = [int(np.sum(jacobians(model, x) <= 0))]
                for found in march(scene, solver, x, 1500, 2):
                    J = jacobians(model, found)
                    inverted.append(int(np.sum(~(J > 0))))
                label = f"{start}, nu = {nu:g}, {sweep_kind}, omega = {omega:g}"
                table[label] = {
                    "inverted after step": at(inverted, (0, 1, 10, 50, 100, 200, 500, 1000, 1500)),
                    "volumes of elements at the end": [float(J.min()), float(J.max())],
                }
                say(f"recovery, {label}: {table[label]}")
    return {
        "what": "10³ cells, E = 1e5, density 1000, 2 iterations of 6 (flattened) or 8 Newton steps",
        **table,
    }


@benchmark
def accuracy() -> Figures:
    """How far each method ends from Newton in one step of a clamped bar, for displacements of all sizes."""
    solvers = {
        "xpbd": XPBD(),
        "xpbd, root": XPBD(constraints="root"),
        "block_xpbd": BlockXPBD(),
        "bpxpbd": BPXPBD(),
        "fpxpbd": FPXPBD(),
        "gpbd": GPBD(),
        "pbd": PBD(),
    }
    table: Figures = {}
    for name in ("corotated", "neo_hookean"):
        for g in (-0.01, -1.0, -100.0, -1000.0):
            material = MATERIALS[name](young=1e4, poisson=0.3)
            scene = clamped(supple.block((6, 3, 3), (1, 0.5, 0.5)), material, 10, 0.01, gravity=(0, g, 0))
            model = supple.build_model(scene)
            truth = placed(model, 0.01, model.rest, 0.0)
            solve(truth, Newton(), Stop(1e-11, 30, None))
            moved = np.linalg.norm(truth.positions - model.rest)
            row = {"largest displacement [m]": float(np.abs(truth.positions - model.rest).max())}
            for label, solver in solvers.items():
                problem = placed(model, 0.01, model.rest, 0.0)
                solve(problem, solver, Stop(None, 400, None))
                row[label] = float(f"{np.linalg.norm(problem.positions - truth.positions) / moved:.3g}")
            table[f"{name}, gravity {g:g}"] = row
            say(f"accuracy, {name}, {g}: {row}")
    return {"what": "distance from Newton over Newton's displacement after 400 sweeps, float64", **table}


# Speed

TARGETS = {"block_xpbd": 8, "xpbd": 10, "bpxpbd": 10, "fpxpbd": 15, "gpbd": 40}
"""Milliseconds per sweep that are wanted on the quiet 2-core machine."""


@benchmark
def speed() -> Figures:
    """Milliseconds per sweep on the res-32 block in float32; only of use on a quiet machine."""
    cases = [
        ("block_xpbd", BlockXPBD(), "neo_hookean"),
        ("block_xpbd", BlockXPBD(ordering="clusters"), "neo_hookean"),
        ("block_xpbd", BlockXPBD(), "corotated"),
        ("xpbd", XPBD(), "neo_hookean"),
        ("xpbd", XPBD(), "corotated"),
        ("bpxpbd", BPXPBD(), "corotated"),
        ("fpxpbd", FPXPBD(), "corotated"),
        ("fpxpbd", FPXPBD(), "neo_hookean"),
        ("gpbd", GPBD(), "neo_hookean"),
        ("gpbd", GPBD(sweep="jacobi"), "neo_hookean"),
        ("gpbd", GPBD(), "log_neo_hookean"),
        ("pbd", PBD(), "stvk"),
        ("pbng", PBNG(), "corotated"),
    ]
    table: Figures = {}
    for name, solver, material in cases:
        found = sweep(31, solver, material, "float32", repeats=30)
        options = {
            k: v
            for k, v in found["options"].items()
            if k in ("ordering", "sweep") and v not in ("colours", "gauss_seidel")
        }
        label = ", ".join([name, material, *map(str, options.values())])
        table[label] = {
            "ms per sweep": round(found["ms_per_sweep"], 2),
            "best": round(found["ms_min"], 2),
            "target": TARGETS.get(name),
            "colours": found["colours"],
            "threads": found["threads"],
        }
        say(f"speed, {label}: {table[label]}")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {"what": "res-32 block, 32768 vertices, 148955 tets, float32", "load average": load, **table}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], help="which; all unless given")
    parser.add_argument("--list", action="store_true", help="say what there is")
    arguments = parser.parse_args()
    if arguments.list:
        for name, function in BENCHMARKS.items():
            print(f"{name:10} {(function.__doc__ or '').splitlines()[0]}")
        return
    for name in arguments.names or BENCHMARKS:
        began = time.perf_counter()
        figures = BENCHMARKS[name]()
        record: Figures = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
        record[name] = {
            "about": (BENCHMARKS[name].__doc__ or "").strip(),
            "measured": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "versions": versions(),
            "seconds": round(time.perf_counter() - began, 1),
            "figures": figures,
        }
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        ordered = {key: record[key] for key in BENCHMARKS if key in record}
        RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
        say(f"{name}: done in {record[name]['seconds']} s")


if __name__ == "__main__":
    main()
