"""Dropped objects compared with Newton's VBD with self-contact on the CPU, in one run:

    python benchmarks/contact_peers.py --python PATH        # of an environment with `pip install newton`

The 8 objects of contact_scenes.py in small size fall into their box, from the same meshes, with the same
energy density (stable neo-Hookean) and 20 iterations a step of 0.01 s; VBD also in 5 steps of 2 ms a frame,
which is nearer to how its examples do it, and with pairs looked for farther off. Its contact has the distance
of our barrier and the stiffness of our weak contact. After every frame ipctk says whether surfaces intersect,
and how deep a vertex is inside of another body is told as in contact_scenes.py; `fallen`, after 0.1, 0.2 ...
s, whether they fall as they should: 0.049 and 0.196 m, and a little more in steps of backward Euler. Warp
runs on one thread of a CPU, and so do we here; seconds are those of the processor.
Writes benchmarks/results/contact_peers.json.
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

RESULTS = Path(__file__).parent / "results" / "contact_peers.json"
OBJECTS, FRAMES, DT, ITERATIONS, YOUNG, POISSON, DENSITY = 8, 51, 0.01, 20, 2e4, 0.3, 100.0
OURS = "barrier", "weak"

VBD: dict[str, tuple[int, float | None]] = {
    "vbd": (1, None),
    "vbd 5 substeps": (5, None),
    "vbd, pairs from 0.15 m": (1, 0.15),
}
"""Steps of a frame, and how far beyond the thickness pairs are looked for [m], as far again unless given: no
vertex moves farther than about half of that in a step."""


def objects(contact: str) -> Any:
    from contact_cases import CASES, Size

    return CASES["dropped_40"].make(contact, Size())


def judged(scene: Any, states: np.ndarray, seconds: float) -> dict[str, Any]:
    """Figures of positions (frames, n, 3)."""
    from contact_scenes import depth_of
    from intersecting import intersects

    finite = np.isfinite(states).all(axis=(1, 2))
    crossed = [k for k, x in enumerate(states, 1) if finite[k - 1] and intersects(scene, x)]
    return {
        "frames": len(states),
        "seconds_per_frame": round(seconds / len(states), 4),
        "frames_that_intersect": len(crossed),
        "first_that_intersects": crossed[0] if crossed else None,
        "deepest": max((depth_of(scene, states[k - 1]) for k in crossed), default=0.0),
        "fallen": [round(float(h), 4) for h in fallen(scene, states)],
        "below_the_floor": float(max(0.0, -np.nanmin(states[:, :, 1]))),
        "finite": bool(finite.all()),
    }


def fallen(scene: Any, states: np.ndarray) -> np.ndarray:
    """Descent of the mean position [m], every ten frames."""
    began = np.concatenate([body.points for body in scene.bodies])[:, 1].mean()
    return np.asarray(began - states[8::10, :, 1].mean(axis=1))


def of_supple(contact: str, frames: int) -> dict[str, Any]:
    import supple
    from supple.kernels import compilation

    scene = objects(contact)
    states, spent = [], 0.0
    with compilation() as compiled:
        moving = supple.simulate(scene, solver=supple.PBNG(iterations=ITERATIONS), frames=frames, threads=1)
        next(moving)  # which sets up and compiles
        begin, before = process_time(), compiled.seconds
        for frame in moving:
            states.append(frame.positions)
        spent = process_time() - begin - (compiled.seconds - before)
    return judged(scene, np.array(states), spent)


def of_newton(substeps: int, gap: float | None, frames: int, given: Any) -> tuple[np.ndarray, float, int]:
    """Positions (frames, n, 3) and processor seconds."""
    import newton
    import warp as wp

    builder = newton.ModelBuilder(up_axis=newton.Axis.Y, gravity=(0.0, -9.81, 0.0))
    mu, lam = YOUNG / (2 * (1 + POISSON)), YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
    for k in range(OBJECTS):
        builder.add_soft_mesh(
            pos=wp.vec3(0, 0, 0), rot=wp.quat_identity(), scale=1.0, vel=wp.vec3(0, 0, 0),
            vertices=[wp.vec3(*p) for p in given[f"points{k}"].tolist()],
            indices=given[f"tets{k}"].ravel().tolist(), density=DENSITY, k_mu=mu, k_lambda=lam, k_damp=0.0,
            particle_radius=1e-3,
        )  # fmt: skip
    half = float(given["width"]) / 2
    for plane in ((0, 1, 0, 0), (1, 0, 0, half), (-1, 0, 0, half), (0, 0, 1, half), (0, 0, -1, half)):
        builder.add_shape_plane(plane=tuple(map(float, plane)), width=0.0, length=0.0)
    builder.color()
    model = builder.finalize(device="cpu")
    model.soft_contact_ke, model.soft_contact_kd, model.soft_contact_mu = float(given["stiffness"]), 0.0, 0.2
    pipeline = newton.CollisionPipeline(model, soft_contact_gap=0.02)
    contacts = pipeline.contacts()
    margin = float(given["thickness"])
    solver = newton.solvers.SolverVBD(
        model, iterations=ITERATIONS, particle_enable_self_contact=True, particle_enable_tile_solve=False,
        particle_self_contact_margin=margin, particle_self_contact_gap=gap or margin,
    )  # fmt: skip
    now, then, control = model.state(), model.state(), model.control()
    positions, spent = [], 0.0
    for frame in range(frames):
        begin = process_time()
        for _ in range(substeps):
            now.clear_forces()
            pipeline.collide(now, contacts)
            solver.step(now, then, control, contacts, DT / substeps)
            now, then = then, now
        wp.synchronize()
        if frame:  # the first compiles
            spent += process_time() - begin
            positions.append(now.particle_q.numpy().copy())
    return np.array(positions), spent, model.particle_count


def peer() -> None:
    import newton
    import warp as wp

    wp.config.quiet = True
    given, frames = np.load(sys.argv[2]), int(sys.argv[4])
    results: dict[str, Any] = {"versions": [newton.__version__, wp.config.version]}
    for name in sys.argv[5:]:
        try:
            results[f"{name} x"], results[f"{name} s"], _ = of_newton(*VBD[name], frames, given)
        except Exception as mistake:
            results[f"{name} error"] = f"{type(mistake).__name__}: {mistake}"
    np.savez(sys.argv[3], **results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True, help="of an environment with newton")
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--only", nargs="*", choices=[*OURS, *VBD], help="others stay as they were")
    arguments = parser.parse_args()
    only = arguments.only or [*OURS, *VBD]
    import supple
    from supple.io.machine import machine

    scene = objects("barrier")
    model = supple.scene.build_model(scene, quasistatic=False)
    contact = model.dynamic_terms[-1][1]
    rows = json.loads(RESULTS.read_text())["solvers"] if RESULTS.exists() else {}
    rows |= {f"supple {kind}": of_supple(kind, arguments.frames) for kind in OURS if kind in only}
    peers = [name for name in VBD if name in only]
    with tempfile.TemporaryDirectory() as folder:
        start, output_file = Path(folder) / "start.npz", Path(folder) / "answer.npz"
        meshes = {f"points{k}": body.points for k, body in enumerate(scene.bodies)}
        meshes |= {f"tets{k}": body.mesh.tets for k, body in enumerate(scene.bodies)}
        edge = contact.surfaces.edge
        numbers = {"width": 1.5, "thickness": contact.thickness, "stiffness": 10 * YOUNG * edge}
        np.savez(start, **meshes, **numbers)
        subprocess.run(
            [
                arguments.python,
                __file__,
                "--peer",
                str(start),
                str(output_file),
                str(arguments.frames),
                *peers,
            ],
            check=True,
        )
        output = np.load(output_file)
        for name in peers:
            if f"{name} x" in output:
                x = output[f"{name} x"].astype(float)
                rows[f"newton {name}"] = judged(scene, x, float(output[f"{name} s"]))
            else:
                rows[f"newton {name}"] = {"error": str(output[f"{name} error"])}
        versions = dict(zip(("newton", "warp"), map(str, output["versions"]), strict=True))
    results = {"vertices": model.vertices, "objects": OBJECTS, "solvers": rows, "versions": versions}
    results |= {"machine": machine(), "date": str(date.today())}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    peer() if sys.argv[1:2] == ["--peer"] else main()
