"""Cloth compared with Newton's VBD and Style3D on the CPU, in one run:

    python benchmarks/cloth_peers.py --python PATH        # of an environment with `pip install newton`

A sheet of 128 × 128 cells, 1 m, 0.2 kg/m², pinned along one edge, has swung for 0.15 s; one more step of
1/300 s is made by each from the same positions and velocities. VBD has the same energy as our `StVK` at
constant thickness (μ = 400, λ = 300 N/m), without bending, so that what its iterations leave of the residual
|∇E| of the step is measured as ours is, by `supple.evaluate`. Then with bending, where only times are
compared: energies of hinges differ, and Style3D's membrane too. Warp runs on one thread of a CPU, and so do
we here.
pbat has no cloth: its solvers are for tetrahedra. Writes benchmarks/results/cloth_peers.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "cloth_peers.json"
CELLS, DENSITY, MU, LAM, BENDING, DT, GRAVITY = 128, 0.2, 400.0, 300.0, 1e-5, 1 / 300, 9.81
COUNTS = (5, 10, 20, 40)
REPEATS = 5


def scene(bending: bool) -> Any:
    import supple

    made = supple.Scene(quasistatic=False, dt=DT, gravity=(0, -GRAVITY, 0))
    mesh = supple.sheet((CELLS, CELLS), (1, 1), pattern="parallel", plane="xz")
    membrane = supple.StVK.from_lame(mu=MU, lam=LAM)
    hinges = supple.HingeBending(BENDING) if bending else None
    cloth = made.add_cloth(mesh, membrane, hinges, density=DENSITY, thickness=1.0)
    made.pin(cloth.where(lambda X: X[:, 0] <= 0))
    return made


def swung() -> tuple[np.ndarray, np.ndarray]:
    """Common initial positions and velocities."""
    import supple

    *_, frame = supple.simulate(scene(False), solver="pbng", frames=45, tolerance=1e-3)
    return frame.positions, frame.velocities


def residual(x: np.ndarray, start: np.ndarray, velocity: np.ndarray) -> float:
    """|M (x - xₙ - Δt vₙ)/Δt² - f(x)| [N] over the free vertices."""
    import supple

    still = scene(False)
    model = supple.scene.build_model(still, quasistatic=False)
    force = supple.evaluate(model, x).net_force
    inertia = model.mass[:, None] * (x - start - DT * velocity) / DT**2
    return float(np.linalg.norm((inertia - force)[model.free]))


def of_supple(start: np.ndarray, velocity: np.ndarray, bending: bool, solver: Any) -> dict[int, tuple]:
    """Milliseconds of some iterations, and the positions after them."""
    import supple
    from supple.solve.batch_solve import make_problem

    model = supple.scene.build_model(scene(bending), quasistatic=False)
    problem = make_problem(model, True, supple.Backend("cpu", "float32", 1))
    results = {}
    for count in COUNTS:
        times = []
        for _ in range(REPEATS):
            problem.positions = start + DT * velocity
            problem.set_inertia(DT, start + DT * velocity)
            problem.begin_step(DT)
            begin = process_time()
            run = solver.begin(problem)
            run.advance(count)
            times.append(process_time() - begin)
        results[count] = 1e3 * min(times), problem.positions.copy()
    return results


def newton_model(start: np.ndarray, velocity: np.ndarray, kind: str, bending: bool) -> Any:
    """The same sheet in Newton, with our coordinates and y upwards."""
    import newton
    import warp as wp

    builder = newton.ModelBuilder(up_axis=newton.Axis.Y, gravity=(0.0, -GRAVITY, 0.0))
    rest = np.load(sys.argv[2])
    points, triangles = rest["rest"], rest["triangles"]
    common = {
        "pos": wp.vec3(0, 0, 0), "rot": wp.quat_identity(), "vel": wp.vec3(0, 0, 0), "scale": 1.0,
        "vertices": [wp.vec3(*p) for p in points.tolist()], "indices": triangles.ravel().tolist(),
        "density": DENSITY, "particle_radius": 1e-4,
    }  # fmt: skip
    if kind == "style3d":
        from newton.solvers import style3d

        newton.solvers.SolverStyle3D.register_custom_attributes(builder)
        common["vertices"] = points.tolist()
        common |= {"panel_verts": points[:, [0, 2]].tolist(), "panel_indices": common["indices"]}
        style3d.add_cloth_mesh(
            builder, **common, tri_aniso_ke=wp.vec3(1000.0, 1000.0, MU),
            edge_aniso_ke=wp.vec3(BENDING, BENDING, BENDING),
        )  # fmt: skip
    else:
        edge = BENDING if bending else 0.0
        builder.add_cloth_mesh(**common, tri_ke=MU, tri_ka=LAM, tri_kd=0.0, edge_ke=edge, edge_kd=0.0)
        builder.color(include_bending=bending)
    for i in np.flatnonzero(points[:, 0] <= 0):
        builder.particle_mass[i] = 0.0
        builder.particle_flags[i] = builder.particle_flags[i] & ~newton.ParticleFlags.ACTIVE
    return builder.finalize(device="cpu")


def of_newton(kind: str, bending: bool) -> dict[str, Any]:
    """Milliseconds and positions of one of Newton's solvers."""
    import newton
    import warp as wp

    given = np.load(sys.argv[2])
    start, velocity = given["start"], given["velocity"]
    model = newton_model(start, velocity, kind, bending)
    solvers = {"vbd": newton.solvers.SolverVBD, "style3d": newton.solvers.SolverStyle3D}
    before, after, control = model.state(), model.state(), model.control()
    results = {}
    for count in COUNTS:
        solver = solvers[kind](model, iterations=count)
        if kind == "style3d":
            solver.collision = None
        times = []
        for _ in range(REPEATS):
            before.particle_q.assign(start.astype(np.float32))
            before.particle_qd.assign(velocity.astype(np.float32))
            before.clear_forces()
            wp.synchronize()
            begin = process_time()
            solver.step(before, after, control, None, DT)
            wp.synchronize()
            times.append(process_time() - begin)
        results[str(count)] = {"ms": 1e3 * min(times), "positions": after.particle_q.numpy().tolist()}
    return results


def peer() -> None:
    import newton
    import warp as wp

    wp.config.quiet = True
    reply = {"versions": {"newton": newton.__version__, "warp": wp.config.version}}
    for name, kind, bending in (
        ("vbd", "vbd", False),
        ("vbd bending", "vbd", True),
        ("style3d", "style3d", True),
    ):
        try:
            reply[name] = of_newton(kind, bending)
        except Exception as mistake:
            reply[name] = {"error": f"{type(mistake).__name__}: {mistake}"}
    Path(sys.argv[3]).write_text(json.dumps(reply))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True, help="of an environment with newton")
    python = parser.parse_args().python
    import supple
    from supple.io.machine import machine

    start, velocity = swung()
    mesh = scene(False).bodies[0].mesh
    solvers = {"pbng": supple.PBNG(acceleration="none"), "pbng anderson": supple.PBNG()}
    begun = residual(start + DT * velocity, start, velocity)

    def left(x: np.ndarray) -> float:
        return residual(x, start, velocity) / begun

    results: dict[str, Any] = {"vertices": mesh.n_vertices, "triangles": mesh.n_triangles, "solvers": {}}
    with tempfile.TemporaryDirectory() as folder:
        given, output_file = Path(folder) / "start.npz", Path(folder) / "answer.json"
        np.savez(given, start=start, velocity=velocity, rest=mesh.points, triangles=mesh.triangles)
        for bending in (False, True):
            for name, solver in solvers.items():
                rows = of_supple(start, velocity, bending, solver)
                label = f"supple {name}{' bending' * bending}"
                results["solvers"][label] = [
                    row(n, ms, None if bending else left(x)) for n, (ms, x) in rows.items()
                ]
        subprocess.run([python, __file__, "--peer", str(given), str(output_file)], check=True)
        output = json.loads(output_file.read_text())
    results["versions"] = output.pop("versions")
    for name, rows in output.items():
        if "error" not in rows:
            same = name == "vbd"
            rows = [
                row(int(n), r["ms"], left(np.array(r["positions"])) if same else None)
                for n, r in rows.items()
            ]
        results["solvers"][f"newton {name}"] = rows
    ours = results["solvers"]["supple pbng bending"][-1]["ms_per_iteration"]
    results["ratios"] = {
        f"newton {name}": round(rows[-1]["ms_per_iteration"] / ours, 2)
        for name, rows in ((n, results["solvers"][f"newton {n}"]) for n in ("vbd bending", "style3d"))
        if isinstance(rows, list)
    }
    results |= {"machine": machine(), "date": str(date.today())}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1))


def row(count: int, ms: float, left: float | None) -> dict[str, Any]:
    one = {"iterations": count, "ms": round(ms, 3), "ms_per_iteration": round(ms / count, 4)}
    return one if left is None else one | {"residual_left": float(f"{left:.3g}")}


if __name__ == "__main__":
    peer() if sys.argv[1:2] == ["--peer"] else main()
