"""BNH: coupled constraints, a scrambled beam, clusters."""

from __future__ import annotations

import time
from importlib.util import find_spec

import numpy as np
from common import DATA, Figures, at, clamped, curves, elastic_energy, jacobians, say
from platformdirs import user_cache_path

import supple
from supple import PBNG, XPBD, BlockXPBD
from supple.ordering import colour_elements, colour_vertices
from supple.ordering.elements import colour_groups, element_groups


def beam(dt: float, gravity: float = -9.81) -> supple.Scene:
    material = supple.NeoHookean(young=1e7, poisson=0.45)
    return clamped(supple.bar((30, 5, 5), (6, 1, 1)), material, 1000, dt, gravity=(0, gravity, 0))


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
