"""`equilibria`: each result equals `equilibrium` of a separate scene."""

from dataclasses import replace

import numpy as np
import pytest
from batch_scenes import MATERIAL, STIFFER, check_batch, hanging_pair

import supple
from supple.problem import Problem
from supple.problem.material_update import materials_of, with_materials
from supple.scene import SceneError
from supple.scene.variations import conditions


@pytest.mark.parametrize("solver", [None, supple.Newton()])
def test_each_result_is_the_equilibrium_of_its_scene(solver):
    check_batch("cpu", solver)


def test_results_are_computed_lazily():
    scene, *_ = hanging_pair()
    requests, seen = [], []

    def endless():
        while True:
            requests.append(None)
            yield supple.Variation(gravity=(0, -float(len(requests)), 0))

    results = supple.equilibria(scene, endless(), progress=lambda *counts: seen.append(counts))
    lengths = [next(results).positions[:, 1].min() for _ in range(3)]
    assert seen == [(1, None), (2, None), (3, None)]
    assert len(requests) == 3
    assert lengths[0] > lengths[1] > lengths[2]


def test_no_variations_give_no_results():
    assert list(supple.equilibria(hanging_pair()[0], [])) == []


def test_progress_counts_a_list_of_variations():
    seen, scene = [], hanging_pair()[0]
    variations = [supple.Variation(gravity=(0, -g, 0)) for g in (1.0, 2.0)]
    list(supple.equilibria(scene, variations, progress=lambda *counts: seen.append(counts)))
    assert seen == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda s, a, b, t: supple.Variation(pins={b: supple.Translate((1, 0, 0))}),
            "not pinned in the scene",
        ),
        (lambda s, a, b, t: supple.Variation(pins={t: np.zeros((2, 3))}), r"must have shape \(16, 3\)"),
        (lambda s, a, b, t: supple.Variation(materials={a: b.material}), "not the class of its material"),
        (lambda s, a, b, t: supple.Variation(materials={"upper": MATERIAL}), "not a body"),
        (lambda s, a, b, t: supple.Variation(initial=np.zeros((2, 3))), "one row of three numbers"),
        (lambda s, a, b, t: supple.Variation(forces={b: (1, 2)}), "force must be"),
        (lambda s, a, b, t: {"gravity": 1}, "supple.Variation"),
        (lambda s, a, b, t: supple.Variation(pins=[t]), "pins of a variation must be a dictionary"),
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


def test_loads_on_unsupported_bodies_are_refused():
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


def test_uniform_material_parameters_reuse_the_problem():
    """Bitwise equal to a new problem for uniform materials; other materials are refused."""
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
def test_parameters_of_inelastic_materials_vary(kind):
    """History variables begin at their initial values; parameters are those of the variation."""

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
