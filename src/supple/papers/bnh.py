"""BNH's figures and tables."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from supple import public as supple
from supple.ordering.elements import colour_groups, element_groups
from supple.papers.account import Account, Figures
from supple.papers.measuring import clamped, elastic_energy, jacobians
from supple.papers.registry import shows
from supple.public import PBNG, XPBD, BlockXPBD

DECOUPLED, COUPLED = XPBD(iterations=1), BlockXPBD(iterations=1)
CLUSTERED = BlockXPBD(iterations=1, ordering="clusters")


def beam(dt: float, cells: tuple[int, int, int] = (30, 5, 5)) -> supple.Scene:
    """3,750 tetrahedra of 1e7 Pa, as in BNH section 6.3."""
    material = supple.NeoHookean(young=1e7, poisson=0.45)
    return clamped(supple.bar(cells, (6, 1, 1)), material, 1000, dt, gravity=(0, -9.81, 0))


@shows("bnh-fig4")
def partitions(account: Account) -> str:
    meshes = {"block of 10³ cells": supple.block(10), "ball": supple.ball(resolution=6)}
    found = {name: account.part(name, partial(coloured, mesh)) for name, mesh in meshes.items()}
    block = found["block of 10³ cells"]
    part = block["clusters of 5"] / block["single elements"]
    word = "agrees" if 0.2 < part < 0.5 else "differs"
    return (
        f"{word}: clusters need {part:.0%} of the colours of single elements (paper: 24 to 43 %); the "
        f"cells of a block need {block['cells']}, as section 4.1 says. Smallest degree last on vertices "
        f"changes little: {block['single elements, smallest last']} and "
        f"{block['clusters of 5, smallest last']}."
    )


def coloured(mesh: supple.TetMesh) -> Figures:
    tets, n = np.asarray(mesh.tets), len(mesh.points)

    def colours(size: int, **how: bool) -> int:
        return int(colour_groups(element_groups(tets, n, size, **how), tets, n).max()) + 1

    found = {
        "single elements": colours(1),
        "clusters of 5": colours(5),
        "single elements, smallest last": colours(1, smallest_last=True),
        "clusters of 5, smallest last": colours(5, smallest_last=True),
    }
    try:
        return found | {"cells": colours(1, cells=True)}
    except ValueError:
        return found


@cache
def highest() -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities of the beam in the frame of highest elastic energy."""
    energy = elastic_energy(supple.build_model(beam(0.01)))
    frames = supple.simulate(beam(0.01), DECOUPLED, frames=60, substeps=30)
    top = max(frames, key=lambda frame: energy(frame.positions))
    return top.positions, np.asarray(top.velocities)


@shows("bnh-fig5")
def convergence(account: Account) -> str:
    cases = {"decoupled": DECOUPLED, "coupled": COUPLED, "coupled, clusters": CLUSTERED}
    found = {name: account.part(name, partial(substeps, solver)) for name, solver in cases.items()}
    one, ten = (found["coupled"][k] / found["decoupled"][k] for k in ("1", "10"))
    alike = abs(found["coupled, clusters"]["10"] / found["coupled"]["10"] - 1) < 0.2
    word = "agrees" if ten < 0.5 and alike else "partly agrees" if ten < 0.9 else "differs"
    return (
        f"{word}: after 1 and 10 substeps the coupled solve has {one:.2g} and {ten:.2g} of the decoupled "
        f"one's elastic energy; clusters change {'little' if alike else 'much'}."
    )


def substeps(solver: Any) -> Figures:
    """Elastic energy [J] after so many substeps of 1/3000 s."""
    start, velocities = highest()
    scene = beam(0.01 / 30)
    energy = elastic_energy(supple.build_model(scene))
    found = supple.simulate(scene, solver, frames=100, start=start, velocities=velocities)
    energies = [energy(frame.positions) for frame in found]
    return {"start": energy(start)} | {str(k): energies[k - 1] for k in (1, 2, 5, 10, 20, 50, 100)}


@shows("bnh-fig6")
def wrinkles(account: Account) -> str:
    found = {
        name: account.part(name, partial(roughness, solver))
        for name, solver in {"decoupled": DECOUPLED, "coupled": COUPLED}.items()
    }
    word = "agrees" if found["decoupled"] > 1.5 * max(found["coupled"], 0.01) else "differs"
    return (
        f"{word}: after 20 frames of 30 substeps the decoupled beam has {found['decoupled']:.1f} times the "
        f"elastic energy of the steps solved well, the coupled one {found['coupled']:.1f} times."
    )


@cache
def smooth() -> float:
    """Elastic energy [J] of the beam after 20 frames that are solved well."""
    *_, last = supple.simulate(beam(0.01), PBNG(), frames=20, tolerance=1e-4)
    return elastic_energy(last.model)(last.positions)


def roughness(solver: Any) -> float:
    *_, last = supple.simulate(beam(0.01), solver, frames=20, substeps=30)
    return elastic_energy(last.model)(last.positions) / smooth()


@shows("bnh-fig8")
def scramble(account: Account) -> str:
    found = account.part("inverted elements", partial(scrambled, account))
    last = list(found.values())[-1]
    word = "agrees" if last == 0 else "differs"
    return f"{word}: of {found['frame 0']} inverted elements {last} are left after {list(found)[-1]}."


def scrambled(account: Account) -> Figures:
    cells, frames = ((30, 5, 5), 200) if account.full else ((12, 3, 3), 100)
    scene = beam(1 / 60, cells)
    model = supple.build_model(scene)
    x = np.where(model.free[:, None], np.random.default_rng(0).permutation(model.rest), model.rest)
    counts = {"frame 0": int(np.sum(jacobians(model, x) < 0))}
    for frame in supple.simulate(scene, COUPLED, frames=frames, substeps=30, start=x):
        if frame.index in (1, 10, 50, 100, 200):
            counts[f"frame {frame.index}"] = int(np.sum(jacobians(model, frame.positions) < 0))
    return counts


@shows("bnh-fig1")
def frame_rate(account: Account) -> str:
    cells = 32 if account.full else 12
    found = account.part(f"block of {cells}³ cells, 50 substeps", partial(large, account, cells))
    rate = 1e3 / found["ms per frame"]
    word = "agrees" if account.full and rate >= 15 else "partly agrees"
    return (
        f"{word}: {found['tetrahedra']:,} tetrahedra (paper: 162,385 of an armadillo that is not public in "
        f"this form) run at {rate:.3g} frames per second with 50 substeps of coupled constraints in "
        f"clusters on {'a GPU' if account.device == 'cuda' else 'the cores of this machine'}; the paper has "
        "15 on its GPU."
    )


def large(account: Account, cells: int) -> Figures:
    mesh = supple.block(cells)
    ms = pace(account, partial(hung_body, mesh), CLUSTERED, 50, 3)
    return {"tetrahedra": len(mesh.tets), "ms per frame": ms}


@shows("bnh-fig7")
def armadillo(account: Account) -> str:
    mesh, what = small_body()
    found = {
        name: account.part(name, partial(survives, mesh, solver))
        for name, solver in {"decoupled": DECOUPLED, "coupled": COUPLED}.items()
    }
    rough, smooth = (row["energy over that of good steps"] for row in found.values())
    word = "agrees" if smooth is not None and (rough is None or rough > 3 * smooth) else "differs"
    return (
        f"{word}: after 30 frames of 20 substeps {what} has {_said(rough)} times the elastic energy of steps "
        f"that are solved well with decoupled constraints, and {_said(smooth)} times with coupled ones."
    )


def _said(value: float | None) -> str:
    return "no finite multiple of" if value is None else f"{value:.2g}"


def small_body() -> tuple[supple.TetMesh, str]:
    """About 2,900 tetrahedra: a ring, since the paper's armadillo of 2,922 is not public in this form."""
    mesh = supple.torus(1.0, 0.35, 2)
    return mesh, f"a ring of {len(mesh.tets):,} tetrahedra, which stands for the armadillo,"


def hung_body(mesh: supple.TetMesh, dt: float) -> supple.Scene:
    """A body of 1e7 Pa held at its least x, as the beam is."""
    material = supple.NeoHookean(young=1e7, poisson=0.45)
    scene = supple.Scene(quasistatic=False, dt=dt, gravity=(0, -9.81, 0))
    body = scene.add_solid(mesh, material, density=1000)
    low, high = mesh.points[:, 0].min(), mesh.points[:, 0].max()
    scene.pin(body.where(lambda X: X[:, 0] <= low + 0.05 * (high - low)))
    return scene


def survives(mesh: supple.TetMesh, solver: Any) -> Figures:
    scene = hung_body(mesh, 0.01)
    energy = elastic_energy(supple.build_model(scene))
    *_, last = supple.simulate(scene, solver, frames=30, substeps=20)
    *_, good = supple.simulate(scene, PBNG(), frames=30, tolerance=1e-3)
    return {
        "energy over that of good steps": energy(last.positions) / energy(good.positions),
        "inverted": int(np.sum(~(jacobians(last.model, last.positions) > 0))),
    }


TABLE_2: dict[str, tuple[int, int, tuple[float, float, float]]] = {
    "beam": (200, 30, (1.67, 6.90, 13.93)),
    "ball": (250, 50, (1.37, 4.76, 8.19)),
}
"""Substeps of the baseline and with blocks, and the paper's speed-ups of C, B and B + C: those of the bunny
for the ball, which has as many tetrahedra with `--full`."""


@shows("bnh-table2")
def speedups(account: Account) -> str:
    said, words = [], []
    for name, (many, few, paper) in TABLE_2.items():
        cases = {
            "baseline": (DECOUPLED, many),
            "C": (XPBD(iterations=1, ordering="clusters"), many),
            "B": (COUPLED, few),
            "B + C": (CLUSTERED, few),
        }
        if name == "beam":
            cases["B in cells"] = (BlockXPBD(iterations=1, ordering="cells"), few)
        scene = partial(body_of, name, account.full)
        ms = {
            case: account.part(
                f"{name}, {case}, {count} substeps [ms per frame]",
                partial(pace, account, scene, solver, count),
            )
            for case, (solver, count) in cases.items()
        }
        C, B, both = (ms["baseline"] / ms[case] for case in ("C", "B", "B + C"))
        words.append("agrees" if B > 3 and C > 1.2 else "partly agrees" if B > 3 else "differs")
        said.append(
            f"{name} {C:.2g}, {B:.2g} and {both:.2g} (paper: {paper[0]:g}, {paper[1]:g}, {paper[2]:g})"
        )
    word = words[0] if len(set(words)) == 1 else "partly agrees"
    return (
        f"{word}: times that C, B and B + C are faster than the baseline: {'; '.join(said)}. Blocks pay "
        "because they need fewer substeps. Clusters pay where a barrier between colours costs more than the "
        "visits that follow one another in a cluster: not on CPU cores, as the paper says of its own, nor in "
        "one launch for all colours (benchmarks/clusters.py)."
    )


def body_of(name: str, full: bool, dt: float) -> supple.Scene:
    return beam(dt) if name == "beam" else hung_body(supple.ball(1.0, 14 if full else 7), dt)


def pace(account: Account, scene: Any, solver: Any, substeps: int, frames: int = 4) -> float:
    """Milliseconds per frame of 0.01 s."""
    options: Any = {"precision": "float32", "device": account.device}
    found = supple.simulate(scene(0.01), solver, frames=frames, substeps=substeps, **options)
    return 1e3 * min(frame.report.seconds for frame in found)


@shows("bnh-table3")
def memory(account: Account) -> str:
    found = account.part("bytes per tetrahedron", per_element)
    word = "partly agrees" if found < 418 else "differs"
    return (
        f"{word}: block XPBD in float32 keeps {found:.0f} bytes per tetrahedron of its own, beside "
        "positions and forces; the paper's 209 are of everything on its GPU."
    )


def per_element() -> float:
    model = supple.build_model(beam(0.01))
    return COUPLED.memory(model, 4) / len(model.tets)
