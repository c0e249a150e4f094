"""The Cusick drape test of six fabrics: python benchmarks/drape.py

A disc of 30 cm lies on one of 18 cm, and the rest of it hangs down (BS 5058, ISO 9073-9). The drape
coefficient is the part of the ring that its shadow covers. Each fabric has a weight and a bending stiffness
that are usual for it; bands are those that are published for its kind. Writes benchmarks/results/drape.json
and docs/drape.md, with a picture of each.
"""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import supple
from supple.io.machine import machine

ROOT = Path(__file__).parents[1]
RESULTS, PAGE, PICTURES = (
    ROOT / "benchmarks/results/drape.json",
    ROOT / "docs/drape.md",
    ROOT / "docs/images",
)
SPECIMEN, SUPPORT, RINGS = 0.15, 0.09, 30
GRID = 1200


class Fabric(NamedTuple):
    """density [kg/m²]; stiffness B [N m]; thickness [m]; young [Pa]; the band [%] and where it is from."""

    density: float
    stiffness: float
    thickness: float
    young: float
    low: float
    high: float
    source: str


FABRICS = {
    "silk": Fabric(0.08, 4.5e-6, 2e-4, 1e7, 20, 40, "Matsudaira and Yang 2003"),
    "flag": Fabric(0.10, 4.5e-6, 2e-4, 1e7, 20, 40, "light synthetics, ISO 9073-9"),
    "cotton": Fabric(0.15, 3.5e-5, 4e-4, 1e7, 60, 76, "Gan, Ly and Steven 1991: 68.4 % measured"),
    "wool": Fabric(0.25, 3.0e-5, 6e-4, 1e7, 40, 70, "worsted suiting"),
    "leather": Fabric(0.60, 8.0e-5, 9e-4, 1e7, 47, 70, "Memon et al. 2021"),
    "denim": Fabric(0.40, 2.5e-4, 8e-4, 1e7, 70, 90, "heavy twill"),
}


def draped(fabric: Fabric, rings: int = RINGS) -> supple.Result:
    """Where the specimen comes to rest, from a disc that is a little wavy, since the flat one has no reason
    to fold one way or the other."""
    mesh = supple.disc(SPECIMEN, rings, plane="xz")
    scene = supple.Scene(gravity=(0, -9.81, 0))
    cloth = scene.add_cloth(
        mesh,
        supple.PlaneStressStVK(young=fabric.young, poisson=0.2),
        supple.HingeBending(fabric.stiffness),
        density=fabric.density,
        thickness=fabric.thickness,
    )
    scene.pin(cloth.where(lambda X: np.hypot(X[:, 0], X[:, 2]) <= SUPPORT + 1e-6), name="support")
    x, _, z = mesh.points.T
    out = np.maximum(np.hypot(x, z) - SUPPORT, 0)
    start = mesh.points.copy()
    start[:, 1] += 0.02 * out * np.sin(7 * np.arctan2(z, x) + 0.3 * np.sin(np.arctan2(z, x)))
    return supple.equilibrium(scene, start=start, tolerance=1e-3)


def shadow(points: np.ndarray, triangles: np.ndarray, grid: int = GRID) -> float:
    """The area [m²] that triangles cover, seen from above."""
    half = 1.05 * SPECIMEN
    step = 2 * half / grid
    covered = np.zeros((grid, grid), bool)
    for a, b, c in (points[triangles][:, :, [0, 2]] + half) / step:
        low, high = np.floor(np.min([a, b, c], axis=0)).astype(int), np.ceil(np.max([a, b, c], axis=0))
        i, j = np.meshgrid(
            *(np.arange(*ends) for ends in zip(low, high.astype(int), strict=True)), indexing="ij"
        )
        p = np.stack([i + 0.5, j + 0.5], axis=-1)
        sides = [_side(p, *pair) for pair in ((a, b), (b, c), (c, a))]
        inside = np.all([s >= 0 for s in sides], axis=0) | np.all([s <= 0 for s in sides], axis=0)
        covered[i[inside], j[inside]] = True
    return float(covered.sum() * step**2)


def _side(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (b[0] - a[0]) * (p[..., 1] - a[1]) - (b[1] - a[1]) * (p[..., 0] - a[0])


def coefficient(positions: np.ndarray, mesh: Any) -> float:
    """[%] of the ring around the support that is in the shadow."""
    inner = np.all(
        np.hypot(*mesh.points[mesh.triangles][:, :, [0, 2]].transpose(2, 0, 1)) <= SUPPORT + 1e-6, 1
    )
    support = shadow(mesh.points, mesh.triangles[inner])
    return (
        100 * (shadow(positions, mesh.triangles) - support) / (shadow(mesh.points, mesh.triangles) - support)
    )


def measured(name: str, fabric: Fabric) -> dict[str, Any]:
    result = draped(fabric)
    report, found = result.report, coefficient(result.positions, supple.disc(SPECIMEN, RINGS, plane="xz"))
    supple.picture(result, PICTURES / f"drape_{name}.png", camera=(35, 30), size=(480, 400), title=name)
    certificate = report.certificate
    return {
        "coefficient": round(found, 1),
        "band": [fabric.low, fabric.high],
        "within": bool(fabric.low <= found <= fabric.high),
        "bending_length_mm": round(1e3 * (fabric.stiffness / (fabric.density * 9.81)) ** (1 / 3), 1),
        "density": fabric.density,
        "stiffness": fabric.stiffness,
        "outcome": report.outcome.name,
        "energy": float(f"{report.energy:.6g}"),
        "distance_of_size": float(f"{certificate.worst.of_size:.2g}") if certificate else None,
        "stable": certificate.stable if certificate else None,
        "curvature": float(f"{certificate.curvature:.3g}") if certificate and certificate.curvature else None,
        "seconds": round(report.seconds, 1),
    }


HEAD = """# Cusick drape of six fabrics

A disc of 30 cm on one of 18 cm (BS 5058, ISO 9073-9): the part of the ring that its shadow covers. It depends
on the bending length (B/ρg)^⅓ most of all, so that one measured coefficient tells a B: change it
in [benchmarks/drape.py](../benchmarks/drape.py) until the coefficient is the measured one. Weights and
stiffnesses are usual ones of each kind of fabric, bands are published ones. Folds are one of many equilibria,
each with its certificate: how far it is from the equilibrium by its size, and the least curvature that was
seen.

| | | kg/m² | B [N m] | bending length [mm] | drape [%] | band [%] | distance | curvature [N/m] |
|---|---|---|---|---|---|---|---|---|"""


def page(found: dict[str, Any]) -> str:
    """One page with all of them."""
    lines = [HEAD]
    for name, fabric in FABRICS.items():
        f = found[name]
        lines.append(
            f"| ![{name}](images/drape_{name}.png) | {name} | {f['density']:g} | {f['stiffness']:g} | "
            f"{f['bending_length_mm']:g} | **{f['coefficient']:g}** | {fabric.low:g} to {fabric.high:g}, "
            f"{fabric.source} | {f['distance_of_size']:.0e} | {f['curvature']} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"fabrics": {}}
    for name in sys.argv[1:] or FABRICS:
        results["fabrics"][name] = measured(name, FABRICS[name])
        results |= {"date": date.today().isoformat(), "machine": machine()}
        print(name, results["fabrics"][name], flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    if results["fabrics"].keys() >= FABRICS.keys():
        PAGE.write_text(page(results["fabrics"]), encoding="utf-8")


if __name__ == "__main__":
    main()
