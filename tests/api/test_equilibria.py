"""Many equilibria of one scene: each must be what `equilibrium` gives for a scene of its own."""

from dataclasses import replace

import numpy as np
import pytest

import supple
from supple.problem import Problem
from supple.problem.material_update import materials_of, with_materials
from supple.scene import SceneError
from supple.scene.variations import conditions
from supple.view.fields import FIELDS

MATERIAL = supple.NeoHookean(young=1e3, poisson=0.3)
STIFFER = supple.NeoHookean(young=3e3, poisson=0.4)


def hanging_pair() -> tuple[supple.Scene, supple.scene.Body, supple.scene.Body, supple.scene.VertexSet]:
    """Two attached blocks, one of another kind of material, pinned on top."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    upper = scene.add_solid(supple.block(3, origin=(0, 1.1, 0)), MATERIAL, 10)
    lower = scene.add_solid(supple.block(2), supple.Corotated(young=1e3, poisson=0.3), 10)
    top = upper.where(lambda X: X[:, 1] >= 2.1)
    scene.pin(top)
    scene.attach(lower.where(lambda X: X[:, 1] >= 1), upper, stiffness=1e5)
    return scene, upper, lower, top


def variations(scene, upper, lower, top) -> list[supple.Variation]:
    turn = supple.Rotate(axis=(0, 1, 0), center=(0.5, 2.1, 0.5), angle=0.8)
    start = supple.scene.build_model(scene).rest + np.array([0.0, -0.05, 0.02])
    return [
        supple.Variation(),
        supple.Variation(pins={top: turn}),
        supple.Variation(pins={top: top.points + np.array([0.1, 0, 0])}, gravity=(1, -5, 0)),
        supple.Variation(forces={lower: (0, -40.0, 0), upper.where([0, 1]): (3.0, 0, 0)}),
        supple.Variation(materials={upper: STIFFER}, initial=start),
    ]


def batch_and_single_solves(solver) -> tuple[list, list]:
    """Five equilibria, each with its own pins, loads and materials, together and one by one."""
    pair = hanging_pair()
    chosen = [*variations(*pair)[:4], supple.Variation(materials={pair[1]: STIFFER})]
    batch, single = (
        list(supple.equilibria(pair[0], chosen, solver=solver, device=device, max_iterations=13))
        for device in ("cuda", "cpu")
    )
    return batch, single


def expected() -> list[np.ndarray]:
    """The same five, each as a scene of its own."""
    results = []
    for k in range(5):
        scene, upper, lower, top = hanging_pair()
        scene.pins.clear()
        motion = None
        if k == 1:
            motion = supple.Rotate(axis=(0, 1, 0), center=(0.5, 2.1, 0.5), angle=0.8)
        if k == 2:
            motion = supple.Translate((0.1, 0, 0))
            scene.gravity = (1, -5, 0)
        if k == 3:
            scene.add_force(lower, (0, -40.0, 0))
            scene.add_force(upper.where([0, 1]), (3.0, 0, 0))
        scene.pin(top, motion)
        if k == 4:
            object.__setattr__(upper, "material", STIFFER)
        results.append(supple.equilibrium(scene, solver=supple.Newton(), tolerance=1e-10).positions)
    return results


def check(device: str, solver, precision: str = "float64", **options) -> list[supple.Result]:
    pair = hanging_pair()
    results = list(
        supple.equilibria(
            pair[0],
            variations(*pair),
            solver=solver,
            tolerance=1e-7,
            device=device,
            precision=precision,
            **options,
        )
    )
    assert [r.report.outcome for r in results] == [supple.Outcome.CONVERGED] * 5
    for result, x in zip(results, expected(), strict=True):
        assert np.abs(result.positions - x).max() < 1e-4
        assert result.report.inverted == 0
        assert result.report.relative_residual <= 1e-7
        residual = FIELDS["residual"].values(result.model, result.positions, result.step)
        assert np.nanmax(residual) < 1e-2, "N, under the loads and with the materials of the variation"
        np.testing.assert_array_equal(result.model.rest + result.state.displacements, result.positions)
        assert not result.state.velocities.any()
    assert len({r.report.iterations for r in results}) > 1, "each stops by itself"
    return results


@pytest.mark.parametrize("solver", [None, supple.Newton()])
def test_each_is_the_equilibrium_of_its_own_scene(solver):
    check("cpu", solver)


def test_they_come_one_after_the_other_as_they_are_requested():
    scene, *_ = hanging_pair()
    requests, seen = [], []

    def endless():
        while True:
            requests.append(None)
            yield supple.Variation(gravity=(0, -float(len(requests)), 0))

    results = supple.equilibria(scene, endless(), progress=seen.append)
    lengths = [next(results).positions[:, 1].min() for _ in range(3)]
    assert seen == [1, 2, 3]
    assert len(requests) == 3
    assert lengths[0] > lengths[1] > lengths[2]


def test_no_variations_are_no_results():
    assert list(supple.equilibria(hanging_pair()[0], [])) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s, a, b, t: supple.Variation(pins={b: supple.Translate((1, 0, 0))}), "does not pin"),
        (lambda s, a, b, t: supple.Variation(pins={t: np.zeros((2, 3))}), r"must have shape \(16, 3\)"),
        (lambda s, a, b, t: supple.Variation(materials={a: b.material}), "not the kind of its material"),
        (lambda s, a, b, t: supple.Variation(materials={"upper": MATERIAL}), "not a body"),
        (lambda s, a, b, t: supple.Variation(initial=np.zeros((2, 3))), "one row of three numbers"),
        (lambda s, a, b, t: supple.Variation(forces={b: (1, 2)}), "force must be"),
        (lambda s, a, b, t: {"gravity": 1}, "supple.Variation"),
        (lambda s, a, b, t: supple.Variation(pins=[t]), "pins of a variation are a dictionary"),
        (lambda s, a, b, t: supple.Variation(time=np.nan), "time"),
        (lambda s, a, b, t: supple.Variation(time="end"), "time"),
        (
            lambda s, a, b, t: supple.Variation(materials={a: type(MATERIAL)(young=np.ones(7), poisson=0.3)}),
            "one for each of its",
        ),
    ],
)
def test_impossible_variations_are_refused(make, message):
    pair = hanging_pair()
    with pytest.raises(SceneError, match=message):
        list(supple.equilibria(pair[0], [make(*pair)]))


def test_loads_on_what_nothing_holds_are_refused():
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_solid(supple.block(1), MATERIAL)
    with pytest.raises(SceneError, match="would fall forever"):
        list(supple.equilibria(scene, [supple.Variation(gravity=(0, -1, 0))]))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"precision": "half"}, "precision"), ({"device": "tpu"}, "device"), ({"batch_size": 0}, "batch_size")],
)
def test_bad_options_are_refused_at_the_call(options, message):
    with pytest.raises(ValueError, match=message):
        supple.equilibria(hanging_pair()[0], [], **options)


def test_other_numbers_of_a_material_need_no_new_problem():
    """Bitwise the same as from a new one, for materials that are the same everywhere; others are refused."""
    scene, upper, *_ = hanging_pair()
    model = supple.scene.build_model(scene)

    def varied(material):
        return conditions(scene, model, supple.Variation(materials={upper: material}))

    problem, stiffer = Problem(model, "float64"), varied(STIFFER)
    for solver in (supple.PBNG("anderson"), supple.Newton(), supple.FPXPBD()):
        for target in (stiffer, conditions(scene, model, supple.Variation())):
            assert problem.set_conditions([target])
            new_problem = Problem(with_materials(model, target.materials or materials_of(model)), "float64")
            new_problem.set_conditions([replace(target, materials=None)])
            for each in (problem, new_problem):
                solver.begin(each).advance(3)
            assert np.array_equal(problem.u, new_problem.u)
            assert problem.balance() == new_problem.balance()
            assert problem.energy() == new_problem.energy()
    uneven = supple.NeoHookean(young=np.linspace(1e3, 2e3, len(upper.mesh.tets)), poisson=0.3)
    assert not problem.set_conditions([varied(uneven)])


@pytest.mark.parametrize("kind", [supple.materials.PlasticStVK, supple.Corotated])
def test_parameters_of_materials_that_evolve_vary_too(kind):
    """What evolves begins as it was given, and the others are those of the variation."""

    def hanging(young):
        scene = supple.Scene(gravity=(0, -9.8, 0))
        body = scene.add_solid(supple.block(1), kind.example(young=young, poisson=0.3), 10)
        scene.pin(body.where(lambda X: X[:, 1] >= 1))
        return scene, body

    scene, body = hanging(2e3)
    varied = [supple.Variation(materials={body: kind.example(young=E, poisson=0.3)}) for E in (1e3, 5e3)]
    for E, result in zip((1e3, 5e3), supple.equilibria(scene, varied, tolerance=1e-6), strict=True):
        single = supple.equilibrium(hanging(E)[0], tolerance=1e-6)
        assert np.abs(result.positions - single.positions).max() < 1e-5
