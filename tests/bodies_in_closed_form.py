"""Twisted cylinders and inflated hollow spheres of Mooney-Rivlin rubber: on meshes, and as functions of the
radius.

By symmetry both are a function r(R). Its energy, written here independently of supple, is minimized over the
coefficients of a polynomial; torque, thrust and pressure are its derivatives. As the bulk modulus grows these
converge to the closed forms of Rivlin and of Green and Zerna.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import supple

C10, C01 = 3e4, 1e4
"""[Pa]"""

TERMS, POINTS = 6, 24
"""Terms of the polynomials, and points of Gauss' rule."""


def density(I1: Any, I2: Any, J: Any, bulk: float) -> Any:
    """c₁ (Ī₁ - 3) + c₂ (Ī₂ - 3) + κ/2 (J - 1)² [J/m³]."""
    return C10 * (J ** (-2 / 3) * I1 - 3) + C01 * (J ** (-4 / 3) * I2 - 3) + 0.5 * bulk * (J - 1) * (J - 1)


def gauss(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    x, w = np.polynomial.legendre.leggauss(POINTS)
    return low + 0.5 * (high - low) * (x + 1), 0.5 * (high - low) * w


def slope(energy: Callable, a: np.ndarray) -> np.ndarray:
    """Derivative by complex steps, exact to rounding."""
    return np.array([energy(a + 1e-30j * unit).imag / 1e-30 for unit in np.eye(len(a))])


def minimum(energy: Callable, a: np.ndarray) -> np.ndarray:
    """Minimizer by Newton's method."""
    for _ in range(30):
        force, h = slope(energy, a), 1e-6
        hessian = [(slope(energy, a + h * e) - slope(energy, a - h * e)) / (2 * h) for e in np.eye(len(a))]
        step = np.linalg.solve(np.array(hessian), -force)
        a = a + step
        if np.abs(step).max() < 1e-12:
            return a
    raise ArithmeticError(f"the last step was {np.abs(step).max()}")


class Torsion(NamedTuple):
    """Solution of a cylinder of this radius under a twist per length [1/m] at constant length: torque [N m],
    thrust [N], and the coefficients of r = R (1 + Σ aₖ (R/radius)²ᵏ)."""

    radius: float
    torque: float
    thrust: float
    coefficients: np.ndarray

    def moved(self, R: np.ndarray) -> np.ndarray:
        return R * (1 + np.polynomial.polynomial.polyval((R / self.radius) ** 2, self.coefficients))


def torsion(radius: float, twist: float, bulk: float) -> Torsion:
    R, w = gauss(0, radius)
    powers = (R / radius) ** (2 * np.arange(TERMS)[:, None])
    odd = 2 * np.arange(TERMS)[:, None] + 1

    def energy(a: np.ndarray, twist: Any = twist, stretch: Any = 1.0) -> Any:
        """Of a slice, for its length at rest [J/m]."""
        radial, around = 1 + a @ (odd * powers), 1 + a @ powers
        shear = R * around * twist
        I1 = radial**2 + around**2 + shear**2 + stretch**2
        I2 = (around * stretch) ** 2 + radial**2 * (stretch**2 + shear**2 + around**2)
        return 2 * np.pi * np.sum(w * R * density(I1, I2, radial * around * stretch, bulk))

    a = minimum(energy, np.zeros(TERMS))
    torque, thrust = energy(a, twist + 1e-30j).imag / 1e-30, energy(a, stretch=1 + 1e-30j).imag / 1e-30
    return Torsion(radius, torque, thrust, a)


def closed_torsion(radius: float, twist: float) -> tuple[float, float]:
    """Torque [N m] and thrust [N] of incompressible rubber [Rivlin 1948]."""
    return (
        np.pi * radius**4 * twist * (C10 + C01),
        -np.pi * radius**4 * twist**2 / 2 * (C10 + 2 * C01),
    )


def inflation(inner: float, outer: float, stretch: float, bulk: float) -> float:
    """Pressure [Pa] in a hollow sphere with this stretch of its inner wall."""
    R, w = gauss(inner, outer)
    s = (R - inner) / (outer - inner)
    powers = s ** (1 + np.arange(TERMS)[:, None])
    slopes = (1 + np.arange(TERMS)[:, None]) * s ** np.arange(TERMS)[:, None] / (outer - inner)

    def energy(a: np.ndarray, stretch: Any = stretch) -> Any:
        """r is that of rubber which keeps its volume, times 1 + Σ aₖ sᵏ⁺¹ [J]."""
        base = (R**3 + (stretch**3 - 1) * inner**3) ** (1 / 3)
        factor = 1 + a @ powers
        around, radial = base * factor / R, R**2 / base**2 * factor + base * (a @ slopes)
        I1, I2 = radial**2 + 2 * around**2, 2 * (radial * around) ** 2 + around**4
        return 4 * np.pi * np.sum(w * R**2 * density(I1, I2, radial * around**2, bulk))

    a = minimum(energy, np.zeros(TERMS))
    return energy(a, stretch + 1e-30j).imag / 1e-30 / (4 * np.pi * inner**3 * stretch**2)


def closed_inflation(inner: float, outer: float, stretch: float) -> float:
    """Pressure [Pa] of incompressible rubber [Green and Zerna 1954]."""

    def primitive(x: float) -> float:
        return 4 * C10 * (1 / x + 1 / (4 * x**4)) - 4 * C01 * (x - 1 / (2 * x**2))

    return primitive((1 + (stretch**3 - 1) * (inner / outer) ** 3) ** (1 / 3)) - primitive(stretch)


def layered(triangles: np.ndarray, layers: list[np.ndarray]) -> supple.TetMesh:
    """Tetrahedra between copies of a triangulated surface: three per prism, with diagonals from corners of
    lower index, so that neighbors conform."""
    count, corners_of_layers = len(layers[0]), []
    a, b, c = np.sort(triangles, axis=1).T
    for k in range(len(layers) - 1):
        low, high = k * count, (k + 1) * count
        corners = [(low + a, low + b, low + c, high + c), (low + a, low + b, high + b, high + c)]
        corners.append((low + a, high + a, high + b, high + c))
        corners_of_layers += [np.stack(four, axis=1) for four in corners]
    return supple.TetMesh(np.concatenate(layers), np.concatenate(corners_of_layers), repair=True)


def rubber(bulk: float) -> supple.materials.Material:
    return supple.MooneyRivlin(c10=C10, c01=C01, bulk_modulus=bulk)


def twisted_cylinder(
    radius: float, length: float, twist: float, bulk: float, resolution: int, solver: Any = None
) -> tuple[float, float, Any]:
    """Torque [N m] and thrust [N] on the upper end of a mesh whose ends have the positions of `torsion`, and
    the report."""
    expected = torsion(radius, twist, bulk)
    disc = supple.meshes.disc(radius, resolution)
    heights = np.linspace(0, length, max(round(resolution * length / radius), 1) + 1)
    mesh = layered(disc.triangles, [disc.points + np.array([0, 0, z]) for z in heights])
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(mesh, rubber(bulk), density=1000)

    def turned(X: np.ndarray, t: float) -> np.ndarray:
        part = min(t, 1.0)
        R, turn = np.hypot(X[:, 0], X[:, 1]), np.arctan2(X[:, 1], X[:, 0]) + part * twist * X[:, 2]
        r = R + part * (expected.moved(R) - R)
        return np.stack([r * np.cos(turn), r * np.sin(turn), X[:, 2]], axis=1)

    scene.pin(body.where(lambda X: X[:, 2] <= 0), turned, name="foot")
    scene.pin(body.where(lambda X: X[:, 2] >= length), turned, name="head")
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-5)
    head = result.evaluate().reactions["head"]
    return head.moment[2], head.force[2], result.report


def inflated_sphere(
    inner: float, outer: float, pressure: float, bulk: float, resolution: int, solver: Any = None
) -> tuple[float, Any]:
    """Stretch of the inner wall of a mesh under a pressure [Pa], from its volume, and the report."""
    surface = supple.meshes.sphere(1.0, resolution)
    radii = np.linspace(inner, outer, max(round(resolution / 2), 1) + 1)
    mesh = layered(surface.triangles, [R * surface.points for R in radii])
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(mesh, rubber(bulk), density=1000)
    hold(scene, body, np.arange(len(mesh.points) - len(surface.points), len(mesh.points)))
    scene.add_cavity(body.where(np.arange(len(surface.points))), pressure)
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-5)
    before, after = (
        _volume(x[: len(surface.points)], surface.triangles) for x in (mesh.points, result.positions)
    )
    return (after / before) ** (1 / 3), result.report


def hold(scene: supple.Scene, body: Any, wall: np.ndarray) -> None:
    """Pins against rigid motions only: a point, a second one on a line through it, a third in a plane with
    both, so that a growing sphere stays free."""
    X = body.points
    first = wall[0]
    second = wall[np.argmax(np.linalg.norm(np.cross(X[wall], X[first]), axis=1))]
    normal = np.cross(X[wall] - X[first], X[second] - X[first])
    third = wall[np.argmax(np.linalg.norm(normal, axis=1))]
    scene.pin(body.where([first]))
    scene.pin(body.where([second]), along=X[second] - X[first])
    scene.pin(body.where([third]), normal=np.cross(X[second] - X[first], X[third] - X[first]))


def _volume(x: np.ndarray, triangles: np.ndarray) -> float:
    a, b, c = np.moveaxis(x[triangles] - x.mean(axis=0), 1, 0)
    return float(np.einsum("ti,ti->", a, np.cross(b, c)) / 6)
