"""The data set of benchmarks/datasets.py, of log_neo_hookean, by loops over peers: equal bar, values, ψ,
tetrahedra and relative residual.

    python benchmarks/dataset_peers.py supple 200     a data set, by one worker, once it has begun
    python benchmarks/dataset_peers.py felupe 5       with an interpreter that has felupe
    python benchmarks/dataset_peers.py torch-fem 5

Each run writes what it took, by the clock and by processors, to benchmarks/results/dataset_peers.json next to
what others have left there, and positions to dataset_PEER.npz in the folder for temporary files, by which it
compares itself with others. supple solves in one process with one thread here, as each of its workers does.
Peers stop at |net forces| ≤ 1e-4 |reactions|, which is about what supple's relative residual is; loads and
motions grow in so few increments as they arrive with.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from arrive_peers import partition
from datasets import SCENE, VARY

from supple.io.machine import machine

CELLS, SIZE, DENSITY = (19, 6, 6), (1.0, 0.3, 0.3), 100.0
TOLERANCE, MOST_STEPS, INCREMENTS = 1e-4, 20, (2, 4, 8, 16)
POOL = 256
"""Number of drawn samples, of which all peers take the first."""

Values = dict[str, float]


class Cost(NamedTuple):
    """Wall seconds, and seconds of all processors."""

    seconds: float
    cpu_seconds: float


def clocks() -> Cost:
    return Cost(perf_counter(), process_time())


def since(began: Cost) -> Cost:
    return Cost(*(now - then for now, then in zip(clocks(), began, strict=True)))


def drawn() -> list[Values]:
    unit = np.random.default_rng(0).random((POOL, len(VARY)))
    return [{v["name"]: _between(v, t) for v, t in zip(VARY, row, strict=True)} for row in unit]


def _between(vary: dict[str, Any], t: float) -> float:
    low, high = vary["range"]
    return low * (high / low) ** t if vary.get("scale") == "log" else low + t * (high - low)


def mesh() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (n, 3) [m], tetrahedra (m, 4) and masses (n,) [kg]."""
    import supple

    bar = supple.block(cells=CELLS, size=SIZE)
    return np.array(bar.points), np.array(bar.tets), bar.masses(DENSITY)


def end_moved(points: np.ndarray, values: Values, part: float) -> np.ndarray:
    """Displacements (k, 3) [m] of the vertices of the far end, scaled by a part."""
    c, s = np.cos(part * values["angle"]), np.sin(part * values["angle"])
    center = np.array([1, 0.15, 0.15])
    turned = (points - center) @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]]).T + center
    return turned - points + part * np.array([values["stretch"], values["lift"], 0])


def lame(values: Values) -> tuple[float, float]:
    young, poisson = values["young"], values["poisson"]
    return young / (2 * (1 + poisson)), young * poisson / ((1 + poisson) * (1 - 2 * poisson))


def with_felupe(samples: list[Values]) -> Iterator[tuple[np.ndarray, Cost]]:
    import felupe as fem

    points, tets, mass = mesh()
    region = fem.RegionTetra(fem.Mesh(points, tets, "tetra"))
    ends = points[:, 0] < 1e-9, points[:, 0] > 1 - 1e-9
    for values in samples:
        began = clocks()
        for count in INCREMENTS:
            field = fem.FieldContainer([fem.Field(region, dim=3)])
            mu, lam = lame(values)
            body = fem.SolidBody(fem.NeoHookeCompressible(mu=mu, lmbda=lam), field)
            try:
                for k in range(1, count + 1):
                    moved = end_moved(points[ends[1]], values, k / count)
                    bounds = {"wall": fem.Boundary(field[0], fx=0.0)}
                    for axis, name in enumerate("xyz"):
                        skip = tuple(int(other != axis) for other in range(3))
                        bounds[name] = fem.Boundary(field[0], fx=1.0, skip=skip, value=moved[:, axis])
                    force = np.zeros_like(points)
                    force[:, 1] = k / count * values["g"] * mass
                    load = fem.PointLoad(field, np.arange(len(points)), force)
                    fem.newtonraphson(
                        items=[body, load],
                        **partition(fem, field, bounds),
                        tol=TOLERANCE,
                        maxiter=MOST_STEPS,
                        verbose=0,
                    )
                break
            except ValueError:  # it did not converge
                continue
        yield points + field[0].values, since(began)


def with_torch_fem(samples: list[Values]) -> Iterator[tuple[np.ndarray, Cost]]:
    import torch
    from torchfem import Solid
    from torchfem.materials import Hyperelastic3D

    torch.set_default_dtype(torch.float64)
    points, tets, mass = mesh()
    ends = points[:, 0] < 1e-9, points[:, 0] > 1 - 1e-9

    def psi(F: Any, parameters: Any) -> Any:
        log_J = 0.5 * torch.logdet(F.transpose(-1, -2) @ F)
        mu, lam = parameters[0], parameters[1]
        return 0.5 * mu * ((F * F).sum() - 3) - mu * log_J + 0.5 * lam * log_J**2

    solid = Solid(torch.tensor(points), torch.tensor(tets), Hyperelastic3D(psi, [1.0, 1.0]))
    solid.constraints[torch.tensor(ends[0] | ends[1]), :] = True
    for values in samples:
        began = clocks()
        solid.material.params = torch.tensor([lame(values)] * len(tets))
        solid.forces[:, 1] = torch.tensor(values["g"] * mass)
        solid.displacements[torch.tensor(ends[1])] = torch.tensor(end_moved(points[ends[1]], values, 1.0))
        u = solid.solve(increments=torch.tensor([0.0, 1.0]), rtol=TOLERANCE, max_iter=MOST_STEPS)[0]
        yield points + u.detach().numpy().reshape(-1, 3), since(began)


def with_supple(samples: list[Values]) -> Iterator[tuple[np.ndarray, Cost]]:
    """Shards of a data set, solved and stored as by a worker; one solve before the start of the clock loads
    kernels."""
    from supple.datasets.read.dataset import open_dataset
    from supple.datasets.run.create import make_store
    from supple.datasets.run.shard import Shards
    from supple.datasets.spec.dataset_spec import load_spec

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bar.toml").write_text(SCENE.replace("corotated", "log_neo_hookean"), encoding="utf-8")
        names = [v["name"] for v in VARY]
        rows = [",".join(names), *(",".join(repr(float(v[n])) for n in names) for v in samples)]
        (folder / "values.csv").write_text("\n".join(rows), encoding="utf-8")
        vary = [{"path": v["path"], "name": v["name"]} for v in VARY]
        spec = {"scene": str(folder / "bar.toml"), "design": "table", "table": str(folder / "values.csv")}
        spec |= {"store": {"shard_size": min(len(samples), 256)}}
        store = make_store(load_spec(spec | {"vary": vary}), folder / "set.zarr")
        shards = Shards(store)
        shards.sampler.solve(shards.values(0), [None])
        began = clocks()
        for shard in range(store.shards):
            shards.run(shard)
        each = Cost(*(cost / len(samples) for cost in since(began)))
        data = open_dataset(store.path)
        index = {tuple(data.input_matrix[k]): k for k in range(data.count)}
        for values in samples:
            yield data["positions"][index[tuple(float(values[n]) for n in names)]].astype(float), each


PEERS: dict[str, Callable[[list[Values]], Iterator[tuple[np.ndarray, Cost]]]] = {
    "supple": with_supple,
    "felupe": with_felupe,
    "torch-fem": with_torch_fem,
}


def main() -> None:
    peer, count = sys.argv[1], int(sys.argv[2])
    positions, costs = zip(*PEERS[peer](drawn()[:count]), strict=True)
    folder = Path(tempfile.gettempdir())
    np.savez(folder / f"dataset_{peer}.npz", positions=np.array(positions))
    differences = {}
    for other in PEERS:
        path = folder / f"dataset_{other}.npz"
        if other != peer and path.exists():
            with np.load(path) as file:
                known = file["positions"]
            both = min(len(known), count)
            differences[other] = float(np.abs(known[:both] - np.array(positions)[:both]).max())
    seconds, cpu = np.mean(costs, axis=0).tolist()
    row = {
        "samples": count,
        "seconds_each": seconds,
        "cpu_seconds_each": cpu,
        "farthest_apart_m": differences,
    }
    path = Path(__file__).parent / "results" / "dataset_peers.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"peers": {}}
    known["machine"] = machine()
    known["peers"][peer] = row | {"version": version(peer), "least_seconds": min(costs)[0]}
    own = known["peers"].get("supple")
    for name, other in known["peers"].items():
        if own is not None and name != "supple":
            other["times_supple"] = {
                key: other[f"{key}_each"] / own[f"{key}_each"] for key in ("seconds", "cpu_seconds")
            }
    path.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(known, indent=2))


if __name__ == "__main__":
    main()
