"""Figures and tables of BNH."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

import supple
from supple import PBNG, XPBD, BlockXPBD
from supple_papers import bnh_partitions
from supple_papers.common import clamped_scene, elastic_energy, jacobians
from supple_papers.internals import bytes_needed
from supple_papers.measurements import Claim, Measurements, Quantities
from supple_papers.registry import shows

PARTS = (bnh_partitions,)
"""Modules that register further experiments on import."""

DECOUPLED, COUPLED = XPBD(iterations=1), BlockXPBD(iterations=1)
CLUSTERED = BlockXPBD(iterations=1, ordering="clusters")


def beam(dt: float, cells: tuple[int, int, int] = (30, 5, 5)) -> supple.Scene:
    """Cantilever of 3,750 tetrahedra with Young's modulus 1e7 Pa, as in BNH section 6.3."""
    material = supple.NeoHookean(young=1e7, poisson=0.45)
    return clamped_scene(supple.block(cells, (6, 1, 1)), material, 1000, dt, gravity=(0, -9.81, 0))


@cache
def highest() -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities of the beam in the frame of highest elastic energy."""
    energy = elastic_energy(supple.scene.build_model(beam(0.01)))
    frames = supple.simulate(beam(0.01), solver=DECOUPLED, frames=60, substeps=30)
    top = max(frames, key=lambda frame: energy(frame.positions))
    return top.positions, np.asarray(top.velocities)


@shows("bnh-fig5")
def convergence(measurements: Measurements) -> str:
    cases = {"decoupled": DECOUPLED, "coupled": COUPLED, "coupled, clusters": CLUSTERED}
    energies = {name: measurements.part(name, partial(substeps, solver)) for name, solver in cases.items()}
    one, ten = (energies["coupled"][k] / energies["decoupled"][k] for k in ("1", "10"))
    clusters_agree = abs(energies["coupled, clusters"]["10"] / energies["coupled"]["10"] - 1) < 0.2
    hundred = energies["decoupled"]["100"] / energies["coupled"]["10"]
    return measurements.judge(
        f"after 1 and 10 substeps the coupled solve has {one:.2g} and {ten:.2g} of the decoupled "
        f"one's elastic energy; the decoupled one has {hundred:.2g} times that after a hundred.",
        Claim("after ten substeps, the coupled solve has less than half of the decoupled energy", ten < 0.5),
        Claim(
            "after a hundred substeps, the decoupled energy is still 1.5 times that of ten coupled substeps",
            hundred > 1.5,
        ),
        Claim("clusters change the coupled energy by less than a fifth", clusters_agree),
    )


def substeps(solver: Any) -> Quantities:
    """Elastic energy [J] after several numbers of substeps of 1/3000 s."""
    start, velocities = highest()
    scene = beam(0.01 / 30)
    energy = elastic_energy(supple.scene.build_model(scene))
    frames = supple.simulate(scene, solver=solver, frames=100, initial=start, velocities=velocities)
    energies = [energy(frame.positions) for frame in frames]
    return {"start": energy(start)} | {str(k): energies[k - 1] for k in (1, 2, 5, 10, 20, 50, 100)}


@shows("bnh-fig6")
def wrinkles(measurements: Measurements) -> str:
    ratios = {
        name: measurements.part(name, partial(energy_ratio, solver))
        for name, solver in {"decoupled": DECOUPLED, "coupled": COUPLED}.items()
    }
    return measurements.judge(
        f"after 20 frames of 30 substeps the decoupled beam has {ratios['decoupled']:.1f} times the "
        f"elastic energy of the steps solved well, the coupled one {ratios['coupled']:.1f} times.",
        Claim("decoupled: more than three times the energy of well-solved steps", ratios["decoupled"] > 3),
        Claim("coupled: less than 1.5 times the energy of well-solved steps", ratios["coupled"] < 1.5),
    )


@cache
def reference_energy() -> float:
    """Elastic energy [J] of the beam after 20 accurately solved frames."""
    *_, last = supple.simulate(beam(0.01), solver=PBNG(), frames=20, tolerance=1e-4)
    return elastic_energy(last.model)(last.positions)


def energy_ratio(solver: Any) -> float:
    *_, last = supple.simulate(beam(0.01), solver=solver, frames=20, substeps=30)
    return elastic_energy(last.model)(last.positions) / reference_energy()


@shows("bnh-fig8")
def scramble(measurements: Measurements) -> str:
    counts = measurements.part("inverted elements", partial(count_inversions, measurements))
    last = list(counts.values())[-1]
    return measurements.judge(
        f"of {counts['frame 0']} inverted elements {last} are left after {list(counts)[-1]}.",
        Claim("no inverted elements remain", last == 0),
    )


def count_inversions(measurements: Measurements) -> Quantities:
    cells, frames = ((30, 5, 5), 200) if measurements.full else ((12, 3, 3), 100)
    scene = beam(1 / 60, cells)
    model = supple.scene.build_model(scene)
    x = np.where(model.free[:, None], np.random.default_rng(0).permutation(model.rest), model.rest)
    counts = {"frame 0": int(np.sum(jacobians(model, x) < 0))}
    for frame in supple.simulate(scene, solver=COUPLED, frames=frames, substeps=30, initial=x):
        if frame.index in (1, 10, 50, 100, 200):
            counts[f"frame {frame.index}"] = int(np.sum(jacobians(model, frame.positions) < 0))
    return counts


@shows("bnh-fig1")
def frame_rate(measurements: Measurements) -> str:
    cells = 32 if measurements.full else 12
    timing = measurements.part(
        f"block of {cells}³ cells, 50 substeps", partial(measure_block, measurements, cells)
    )
    rate = 1e3 / timing["ms per frame"]
    throughput, paper_throughput = rate * timing["tetrahedra"], 15 * 162_385
    return measurements.judge(
        f"{timing['tetrahedra']:,} tetrahedra (paper: 162,385 of an armadillo that is not public in "
        f"this form) run at {rate:.3g} frames per second with 50 substeps of coupled constraints in "
        f"clusters on {'a GPU' if measurements.device == 'cuda' else 'the cores of this machine'}, "
        f"{throughput / 1e6:.2g} million in a second; the paper has 15 on its GPU, "
        f"{paper_throughput / 1e6:.2g} million.",
        Claim(
            "tetrahedra per second reach the paper's rate",
            throughput >= paper_throughput,
            "CPU cores here, GPU cores in the paper; `--device cuda` measures our GPU figures.",
        ),
    )


def measure_block(measurements: Measurements, cells: int) -> Quantities:
    mesh = supple.block(cells)
    ms = frame_time(measurements, partial(clamped_body, mesh), CLUSTERED, 50, 3)
    return {"tetrahedra": len(mesh.tets), "ms per frame": ms}


@shows("bnh-fig7")
def armadillo(measurements: Measurements) -> str:
    mesh, what = small_body()
    rows = {
        name: measurements.part(name, partial(compare_energies, mesh, solver))
        for name, solver in {"decoupled": DECOUPLED, "coupled": COUPLED}.items()
    }
    decoupled, coupled = (row["energy over that of good steps"] for row in rows.values())
    return measurements.judge(
        f"after 30 frames of 20 substeps {what} has {_format_value(decoupled)} times the elastic energy "
        "of steps "
        f"that are solved well with decoupled constraints, and {_format_value(coupled)} times with "
        "coupled ones.",
        Claim(
            "decoupled: more than three times the energy of well-solved steps",
            decoupled is None or decoupled > 3,
        ),
        Claim(
            "coupled: less than 1.5 times the energy of well-solved steps",
            coupled is not None and coupled < 1.5,
        ),
    )


def _format_value(value: float | None) -> str:
    return "no finite multiple of" if value is None else f"{value:.2g}"


def small_body() -> tuple[supple.TetMesh, str]:
    """Torus of about 2,900 tetrahedra instead of the paper's armadillo.

    The armadillo of 2,922 tetrahedra is not public in this form.
    """
    mesh = supple.meshes.torus(1.0, 0.35, 2)
    return mesh, f"a ring of {len(mesh.tets):,} tetrahedra, which stands for the armadillo,"


def clamped_body(mesh: supple.TetMesh, dt: float) -> supple.Scene:
    """Body with Young's modulus 1e7 Pa, clamped at its smallest x like the beam."""
    material = supple.NeoHookean(young=1e7, poisson=0.45)
    scene = supple.Scene(quasistatic=False, dt=dt, gravity=(0, -9.81, 0))
    body = scene.add_solid(mesh, material, density=1000)
    low, high = mesh.points[:, 0].min(), mesh.points[:, 0].max()
    scene.pin(body.where(lambda X: X[:, 0] <= low + 0.05 * (high - low)))
    return scene


def compare_energies(mesh: supple.TetMesh, solver: Any) -> Quantities:
    scene = clamped_body(mesh, 0.01)
    energy = elastic_energy(supple.scene.build_model(scene))
    *_, last = supple.simulate(scene, solver=solver, frames=30, substeps=20)
    *_, good = supple.simulate(scene, solver=PBNG(), frames=30, tolerance=1e-3)
    return {
        "energy over that of good steps": energy(last.positions) / energy(good.positions),
        "inverted": int(np.sum(~(jacobians(last.model, last.positions) > 0))),
    }


TABLE_2: dict[str, tuple[int, int, tuple[float, float, float]]] = {
    "beam": (200, 30, (1.67, 6.90, 13.93)),
    "ball": (250, 50, (1.37, 4.76, 8.19)),
}
"""Substeps of the baseline and with blocks, and the paper's speed-ups of C, B and B + C.

The ball is compared with the bunny, which has as many tetrahedra as the ball with `--full`.
"""


@shows("bnh-table2")
def speedups(measurements: Measurements) -> str:
    said, speed = [], {}
    for name, (many, few, paper) in TABLE_2.items():
        cases = {
            "baseline": (DECOUPLED, many),
            "C": (XPBD(iterations=1, ordering="clusters"), many),
            "B": (COUPLED, few),
            "B + C": (CLUSTERED, few),
        }
        if name == "beam":
            cases["B in cells"] = (BlockXPBD(iterations=1, ordering="cells"), few)
        scene = partial(body_of, name, measurements.full)
        ms = {
            case: measurements.part(
                f"{name}, {case}, {count} substeps [ms per frame]",
                partial(frame_time, measurements, scene, solver, count),
            )
            for case, (solver, count) in cases.items()
        }
        C, B, both = (ms["baseline"] / ms[case] for case in ("C", "B", "B + C"))
        speed[name] = C, B, both
        said.append(
            f"{name} {C:.2g}, {B:.2g} and {both:.2g} (paper: {paper[0]:g}, {paper[1]:g}, {paper[2]:g})"
        )
    color_cost = (
        "all colors form one launch here: a wait between colors costs 1.1 µs, an element update 0.7 µs "
        "(benchmarks/clusters.py); the paper launches one kernel per color"
        if measurements.device == "cuda"
        else "waits between colors cost next to nothing on CPU cores, as in the paper"
    )
    return measurements.judge(
        f"times that C, B and B + C are faster than the baseline: {'; '.join(said)}. Blocks pay because they "
        "need fewer substeps.",
        Claim(
            "B is three times as fast as the baseline, on both bodies",
            all(B > 3 for _, B, _ in speed.values()),
        ),
        Claim(
            "C is 1.2 times as fast as the baseline, on both",
            all(C > 1.2 for C, _, _ in speed.values()),
            f"{color_cost}. Clusters have fewer waits and more sequential updates.",
        ),
        Claim(
            "B + C is 1.2 times as fast as B, on both",
            all(both > 1.2 * B for _, B, both in speed.values()),
            f"{color_cost}.",
        ),
    )


def body_of(name: str, full: bool, dt: float) -> supple.Scene:
    return beam(dt) if name == "beam" else clamped_body(supple.ball(1.0, 14 if full else 7), dt)


def frame_time(measurements: Measurements, scene: Any, solver: Any, substeps: int, frames: int = 4) -> float:
    """Time per frame of 0.01 s [ms]."""
    options: Any = {"precision": "float32", "device": measurements.device}
    results = supple.simulate(scene(0.01), solver=solver, frames=frames, substeps=substeps, **options)
    return 1e3 * min(frame.report.seconds for frame in results)


@shows("bnh-table3")
def memory(measurements: Measurements) -> str:
    bytes_per_element = measurements.part("bytes per tetrahedron of the beam", per_element)
    total, own = bytes_per_element["in all"], bytes_per_element["of the solver"]
    return measurements.judge(
        f"block XPBD in float32 keeps {own:.0f} bytes per tetrahedron of its own, and {total:.0f} "
        "with states and "
        "what residuals need, which `supple inspect` counts; the paper has 209 on its GPU.",
        Claim("at most 209 bytes of method data per tetrahedron", own <= 209),
        Claim(
            "at most 209 bytes in total per tetrahedron",
            total <= 209,
            "residuals, reports and forces loop over vertices, which needs one copy of every element per "
            "corner; the paper has sweeps only.",
        ),
    )


def per_element() -> Quantities:
    model = supple.scene.build_model(beam(0.01))
    count = len(model.tets)
    return {
        "in all": bytes_needed(model, COUPLED, 4) / count,
        "of the solver": COUPLED.memory(model, 4) / count,
    }
