"""Materials that define only ψ: derived functions, refusals and warnings."""

import math
import warnings

import numpy as np
import pytest
from problems import cantilever, deformations, flat, material, matrix, rotations, twisted
from psi_only_materials import PSI_ONLY, Corotated, LinearElastic, NeoHookean, StretchedCorotated

import supple
from supple.algebra.matrix3 import dot, matvec
from supple.kernels.compile.code_hash import identity
from supple.materials import (
    Direction,
    Isotropic,
    Material,
    Pa,
    findings,
    psi,
    shear_modulus,
    stress,
    stress_differential,
    traction,
)
from supple.materials.autodiff.trace import TraceError

YOUNG, POISSON = 1e3, 0.3


def derived_class(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if name == "linear_elastic" else "error")
        return PSI_ONLY[name](young=YOUNG, poisson=POISSON)


@pytest.mark.parametrize("name", PSI_ONLY)
@pytest.mark.parametrize("inverted", [False, True])
def test_derived_functions_agree_with_formulas_to_rounding(name, inverted):
    one, other = material(name), derived_class(name)
    if inverted and one.barrier:
        pytest.skip("it cannot be inverted")
    g = (0.3, -0.7, 0.4)
    for F, D in zip(deformations(8, inverted=inverted), rotations(8, seed=4), strict=True):
        for function, given in ((psi, ()), (stress, ()), (stress_differential, (flat(D),)), (traction, (g,))):
            actual, expected = (np.array(function(kind, flat(F), *given)) for kind in (other, one))
            np.testing.assert_allclose(actual, expected, atol=1e-11 * YOUNG * np.linalg.norm(F) ** 2)
    assert shear_modulus(other) == pytest.approx(one.mu, rel=1e-12)


@pytest.mark.parametrize("name", PSI_ONLY)
def test_derived_properties_equal_declared_ones(name):
    kind, derived = type(material(name)), PSI_ONLY[name]
    assert (derived.barrier, derived.objective) == (kind.barrier, kind.objective)
    assert derived.isotropic == (kind.isotropic and kind.objective)


def test_stretches_and_invariants_agree():
    one, other = (kind(young=YOUNG, poisson=POISSON) for kind in (Corotated, StretchedCorotated))
    for F, D in zip(deformations(8), rotations(8, seed=4), strict=True):
        for function, given in ((psi, ()), (stress, ()), (stress_differential, (flat(D),))):
            actual, expected = (np.array(function(kind, flat(F), *given)) for kind in (other, one))
            np.testing.assert_allclose(actual, expected, atol=1e-8 * YOUNG)


@pytest.mark.parametrize(
    "values", [(1, 1, 1), (1.3, 1.3, 0.8), (1.3, 1.3 + 1e-9, 0.8), (1.2, 1.2 - 1e-5, 1.2 + 1e-5)]
)
def test_stretches_may_be_equal_or_nearly_equal(values):
    kind = material("ogden")
    F, h = np.diag(np.array(values, float)), 1e-5
    for D in rotations(4, seed=4):
        slope = np.array(stress(kind, flat(F + h * D))) - np.array(stress(kind, flat(F - h * D)))
        differential = stress_differential(kind, flat(F), flat(D))
        np.testing.assert_allclose(differential, slope / (2 * h), atol=1e-6 * YOUNG)


def test_pbng_result_equals_that_of_formulas():
    """A strongly twisted block: equal equilibrium in about as many sweeps."""
    results = {}
    for kind in (material("neo_hookean"), NeoHookean(young=YOUNG, poisson=POISSON)):
        scene = twisted(kind, cells=3)
        sweeps = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-7)
        results[type(kind)] = sweeps
    one, other = results.values()
    np.testing.assert_allclose(one.positions, other.positions, atol=1e-5)
    assert other.report.iterations <= 1.5 * one.report.iterations + 5


class Gent(Material):
    """As in the README."""

    mu: Pa
    kappa: Pa
    Jm: float = 30.0

    def psi(self, I1, J):
        stretch = -0.5 * self.mu * self.Jm * math.log(1 - (I1 - 3) / self.Jm)
        return stretch - self.mu * math.log(J) + 0.5 * self.kappa * (J - 1) ** 2


SOLVERS = ["hybrid", "newton", "gpbd", "xpbd", "bpxpbd", "pbd"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_take_a_psi_only_material(solver):
    """Against PBNG: converging solvers are close, the others have approached the equilibrium."""
    scene = cantilever(Gent(mu=400.0, kappa=800.0), cells=2, gravity=5)
    rest = supple.scene.build_model(scene).rest
    expected = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-8).positions
    positions = supple.equilibrium(scene, solver=solver, tolerance=1e-7, max_iterations=300).positions
    error, way = np.abs(positions - expected).max(), np.abs(rest - expected).max()
    assert way > 0.01
    assert error < {"hybrid": 1e-4, "newton": 1e-4, "pbd": 1.0}.get(solver, 0.6) * way


def test_float32_solve_agrees():
    scene = cantilever(Gent(mu=400.0, kappa=800.0), cells=2, gravity=5)
    fine, coarse = (
        supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-4, precision=p)
        for p in ("float64", "float32")
    )
    np.testing.assert_allclose(fine.positions, coarse.positions, atol=1e-3)


def test_annotations_declare_parameters():
    assert [(p.name, p.unit, p.kind, p.default) for p in Gent.parameters] == [
        ("mu", "Pa", "scalar", None),
        ("kappa", "Pa", "scalar", None),
        ("Jm", "", "scalar", 30.0),
    ]
    assert Gent(mu=1.0, kappa=2.0).Jm == 30.0
    with pytest.raises(ValueError, match="mu must be positive"):
        Gent(mu=-1.0, kappa=2.0)

    class Corded(Gent):
        fiber: "Direction"

        def psi(self, F):
            d = matvec(F, self.fiber)
            return 0.5 * self.mu * (dot(d, d) - 1) ** 2 + self.mu * sum(x * x for x in F)

    assert [p.name for p in Corded.parameters] == ["mu", "kappa", "Jm", "fiber"]
    with pytest.warns(UserWarning, match="stress at rest"):
        kind = Corded(mu=1.0, kappa=1.0, fiber=(0, 0, 2))
    assert kind.fiber == (0, 0, 1)
    assert not Corded.isotropic
    assert Corded.objective
    assert not Corded.barrier


class Unturned(Material):
    mu: Pa

    def psi(self, F):
        return self.mu * sum((x - e) ** 2 for x, e in zip(F, (1, 0, 0, 0, 1, 0, 0, 0, 1), strict=True))


class Stressed(Material):
    mu: Pa

    def psi(self, I1):
        return self.mu * (I1 - 3)


class Infinite(Material):
    mu: Pa

    def psi(self, I1, J):
        return self.mu * math.log(I1 - 4)


class Kinked(Material):
    mu: Pa

    def psi(self, I1, J):
        return self.mu * math.sqrt(I1 - 3)


class Doubled(Isotropic):
    def psi(self, I1, J):
        return self.mu * (I1 - 3 - 2 * (J - 1)) + (self.lam + self.mu) * (J - 1) ** 2


class Soft(Material):
    mu: Pa

    def psi(self, J):
        return self.mu * (J - 1) ** 2


class Lopsided(Material):
    mu: Pa

    def psi(self, stretches):
        x, y, z = stretches
        return self.mu * ((x - 1) ** 2 + 2 * (y - 1) ** 2 + (z - 1) ** 2)


WRONG = [
    (Unturned, "not invariant under rotations"),
    (Stressed, "not free of stress at rest: the stress is 2e.05 Pa"),
    (Infinite, "not a finite number at rest"),
    (Kinked, "no derivatives at rest"),
    (Doubled, "moduli at rest are E = 2e.05 Pa and ν = 0.3, which differ from its parameters E = 1e.05 Pa"),
    (Soft, "not stable at rest"),
    (Lopsided, "not a symmetric function"),
]


@pytest.mark.parametrize(("kind", "sentence"), WRONG)
def test_invalid_energies_are_reported(kind, sentence):
    with pytest.warns(UserWarning, match=sentence):
        made = kind.example()
    scene = cantilever(made, cells=1)
    assert any(
        sentence.split(":")[0] in finding for finding in supple.inspect(scene)["bodies"][0]["findings"]
    ) or (kind is Doubled and supple.inspect(scene)["bodies"][0]["findings"])


def test_valid_energy_is_not_reported(recwarn):
    assert findings(Gent(mu=1e3, kappa=np.full(4, 2e3))) == []
    assert not recwarn.list


def density(**functions):
    return type("Wrong", (Material,), {"__annotations__": {"mu": Pa}, **functions})


@pytest.mark.parametrize(
    ("psi", "sentence"),
    [
        (lambda self, I1: self.mu if I1 > 3 else 0.0, "cannot branch with `if`.*supple.where"),
        (lambda self, I1: math.sin(I1), r"psi of Wrong\w* cannot be differentiated.*to a float"),
        (lambda self, I1: self.mu, "does not depend on I1"),
        (lambda self, I1: "text", "expected a number, got 'text'"),
        (lambda self, I1: None, "expected a number, got None"),
        (lambda self, I1: self.mue * I1, r"Wrong\w* has no parameter 'mue'; did you mean 'mu'\? F is"),
        (lambda self, I1: maths.log(I1), "psi of .* cannot be read: name 'maths' is not defined"),  # noqa: F821
        (lambda self, I1: math.lg(I1), "cannot be read: module 'math' has no attribute 'lg'"),
        (
            lambda self, F: self.mu * F[1][1],
            r"a number cannot be indexed, got \[1\].*nine numbers, row by row",
        ),
    ],
)
def test_non_differentiable_psi_is_refused(psi, sentence):
    with pytest.raises(TraceError, match=sentence):
        density(psi=psi)(mu=1.0)


def test_parameters_of_other_kinds_are_refused():
    kind = type("Listed", (Material,), {"__annotations__": {"c": list}, "psi": lambda self, I1: I1})
    with pytest.raises(
        TypeError, match="no parameter 'c'; its annotation is list, but parameters are annotated as supple"
    ):
        kind(c=[1.0, 2.0])
    with pytest.raises(TypeError, match="no parameter 'd'; it has none"):
        kind(d=1.0)


def of_numpy(self, F):
    A = np.array(F).reshape(3, 3)
    I1, J = np.trace(A.T @ A), np.linalg.det(A)
    rise = np.cosh(I1 - 3) + np.tanh(I1 - 3) + np.sinh(I1 - 3) + np.expm1(I1 - 3) - 3 * np.log1p(J - 1)
    return self.mu * (rise + np.where(J > 1, 2, 3) * np.power(np.maximum(J - 1, 1 - J), 2) + np.abs(I1))


def of_math(self, I1, J):
    x, log = I1 - 3, math.log(J)
    up, down = math.exp(x), math.exp(-x)
    rise = 0.5 * (up + down) + (up - down) / (up + down) + 0.5 * (up - down) + up - 1 - 3 * log
    return self.mu * (rise + supple.where(J > 1, 2, 3) * (J - 1) ** 2 + I1)


@pytest.mark.filterwarnings("ignore:.*stress at rest")
def test_psi_may_be_written_with_numpy():
    one, other = (density(psi=function)(mu=1.0) for function in (of_numpy, of_math))
    for F, D in zip(deformations(4), rotations(4, seed=4), strict=True):
        for function, given in ((psi, ()), (stress, ()), (stress_differential, (flat(D),))):
            actual, expected = (np.array(function(kind, flat(F), *given)) for kind in (one, other))
            np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@pytest.mark.filterwarnings("ignore:.*at rest")
@pytest.mark.parametrize("rate", [-900.0, -60.0, 0.5, 60.0, 900.0])
def test_saturating_functions_are_finite(rate):
    """tanh and its stress, P = 2 k (1 - tanh²) F, with arguments of overflowing exponentials."""
    kind = density(psi=lambda self, I1: self.mu * math.tanh(rate * (I1 - 2)))(mu=1.0)
    for F in deformations(4):
        x = rate * (np.sum(F * F) - 2)
        assert psi(kind, flat(F)) == pytest.approx(np.tanh(x), rel=1e-12)
        actual = np.array(stress(kind, flat(F))).reshape(3, 3)
        slope = 0.0 if abs(x) > 300 else rate / np.cosh(x) ** 2
        np.testing.assert_allclose(actual, 2 * slope * F, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("psi", [lambda self: 0.0, lambda self, I4: 0.0, lambda self, F, J: 0.0])
def test_wrong_arguments_of_psi_are_refused_at_class_creation(psi):
    with pytest.raises(
        TraceError, match="psi must be a function of F, of stretches, or of some of I1, I2 and J"
    ):
        density(psi=psi)


def own(factor):
    class Own(Material):
        mu: Pa

        def psi(self, I1, J):
            return 0.5 * self.mu * (I1 - 3 - 2 * math.log(J)) + factor * self.mu * (J - 1) ** 2

    return Own


def test_kernels_are_cached_by_the_computation_of_psi():
    """Classes with equal computations share kernels on disk in every process."""
    assert identity(own(1.5)) == identity(own(1.5))
    assert identity(own(1.5)) != identity(own(2.5))


def test_matrices_of_derived_materials_are_symmetric_in_python():
    kind = Gent(mu=1e3, kappa=2e3)
    for F in deformations(3):
        cauchy = matrix(stress(kind, flat(F))) @ F.T
        np.testing.assert_allclose(cauchy, cauchy.T, atol=1e-9 * 1e3)


def test_custom_linear_elasticity_warns_of_large_rotations():
    with pytest.warns(UserWarning, match="not invariant under rotations"):
        LinearElastic(young=1e3, poisson=0.3)
