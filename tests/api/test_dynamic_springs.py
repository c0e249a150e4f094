"""Springs that are exchanged between steps of a Stepper."""

from dataclasses import replace

import numpy as np
import pytest
from problems import PBNGS, PRECISIONS, cantilever, face, material

import supple
from supple import XPBD, Newton
from supple.api.dynamic_springs import make_springs

DT = 0.02
SOLVERS = {
    **{f"pbng-{name}": PBNGS[name] for name in ("none", "anderson")},
    "xpbd": XPBD(),
    "newton": Newton(),
}
CASES = [
    pytest.param(solver, precision, id=f"{name}-{precision}")
    for name, solver in SOLVERS.items()
    for precision in (("float64",) if name == "newton" else PRECISIONS)
]


def scene():
    swinging = cantilever(material("neo_hookean"), cells=2)
    swinging.quasistatic, swinging.dt = False, DT
    return swinging


def stepper(solver=None, precision="float64", springs=4, **options):
    limits = {"max_iterations": 3 if isinstance(solver, Newton) else 10, **options}
    return supple.Stepper(scene(), DT, solver=solver, precision=precision, springs=springs, **limits)


def at(index):
    """Springs of a step, some of them new; more than the initial capacity."""
    random = np.random.default_rng(index // 2)
    return random.permutation(27)[: 2 * (index % 4) * 3].reshape(-1, 2)


def run(sim, first, last):
    frames = []
    for index in range(first, last):
        sim.set_springs(at(index), stiffness=40.0, rest_length=0.3)
        frames.append(sim.step())
    return frames


@pytest.mark.parametrize(("solver", "precision"), CASES)
def test_motion_resumed_from_state_is_bitwise_identical(solver, precision):
    """Springs are not part of the state, and nothing else about them is stored."""
    uninterrupted = run(stepper(solver, precision), 0, 7)
    other = stepper(solver, precision, springs=30)
    other.state = uninterrupted[2].state
    for frame, expected in zip(run(other, 3, 7), uninterrupted[3:], strict=True):
        np.testing.assert_array_equal(frame.positions, expected.positions)
        np.testing.assert_array_equal(frame.velocities, expected.velocities)
    reference = stepper(solver, precision)
    assert not np.array_equal([reference.step() for _ in range(7)][-1].positions, uninterrupted[-1].positions)


def test_equilibrium_matches_a_model_with_the_springs():
    pairs = [(26, 0), (25, 1), (20, 7)]
    sim = stepper(quasistatic=True, tolerance=1e-9, max_iterations=5000)
    loose = sim.step()
    sim.set_springs(pairs, stiffness=[20.0, 30.0, 40.0], rest_length=0.5)
    tied = sim.step()
    assert tied.report.ok
    term = make_springs(loose.model, pairs, [20.0, 30.0, 40.0], 0.5, loose.positions)
    model = replace(loose.model, terms=(*loose.model.terms[:-1], term))
    expected = supple.equilibrium(model, solver="newton", tolerance=1e-10)
    np.testing.assert_allclose(tied.positions, expected.positions, atol=1e-6)
    assert np.abs(tied.positions - loose.positions).max() > 0.01
    sim.set_springs([])
    np.testing.assert_allclose(sim.step().positions, loose.positions, atol=1e-6)


def test_default_spring_length_is_the_present_distance():
    """Such springs exert no force at first, and pictures show them."""
    sim = stepper(quasistatic=True, tolerance=1e-9, max_iterations=5000)
    hanging = sim.step()
    sim.set_springs([(26, 0), (20, 3)], stiffness=100.0)
    np.testing.assert_allclose(sim.step().positions, hanging.positions, atol=1e-6)
    (*_, term) = sim.model.terms
    np.testing.assert_array_equal(term.ends(hanging.positions), hanging.positions[[[26, 0], [20, 3]]])


def test_batch_members_share_springs():
    sim, one = stepper(batch_size=2), stepper()
    for index in range(3):
        for each in (sim, one):
            each.set_springs(at(index), 40.0, 0.3)
        frames, frame = sim.step(), one.step()
        for k in range(2):
            np.testing.assert_array_equal(frames[k].positions, frame.positions)
    with pytest.raises(ValueError, match="with batch_size, springs need an explicit rest_length"):
        sim.set_springs([(0, 1)], 1.0)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (([(0, 1)],), "1 springs need a stiffness"),
        (([(0, 27)], 1.0), r"whole numbers \(m, 2\) from 0 to 26, got numbers from 0 to 27"),
        (([(0, -1)], 1.0), "got numbers from -1 to 0"),
        (([(0, 1.5)], 1.0), "springs must be pairs of vertices"),
        (([0, 1], 1.0), "springs must be pairs of vertices"),
        (([(0, 1), (5, 5)], 1.0), "both ends of spring 1 are vertex 5"),
        (([(0, 1)], -1.0), r"stiffness \[N/m\] must lie between 0 and"),
        (([(0, 1)], np.nan), r"stiffness \[N/m\] must lie between 0 and"),
        (([(0, 1)], [1.0, 2.0]), "one number, or one for each of the 1 springs"),
        (([(0, 1)], 1.0, np.inf), r"rest_length \[m\] must lie between 0 and"),
        (([(0, 1)], "soft"), "stiffness"),
    ],
)
def test_invalid_springs_are_refused(given, sentence):
    sim = stepper()
    with pytest.raises(ValueError, match=sentence):
        sim.set_springs(*given)


def test_springs_need_capacity():
    with pytest.raises(ValueError, match=r"create it with Stepper\(..., springs=100\)"):
        stepper(springs=0).set_springs([(0, 1)], 1.0)
    with pytest.raises(ValueError, match="springs must be a whole number of at least 0"):
        stepper(springs=-1)
    with pytest.raises(ValueError, match=r"outside the range of precision='float32'"):
        stepper(precision="float32").set_springs([(0, 1)], 1e20)


def test_pinned_vertices_may_have_springs():
    """A free vertex follows the pinned one at the other end of a spring."""
    sim = stepper(quasistatic=True, tolerance=1e-6, max_iterations=3000)
    pinned, tip = int(sim.pinned[0]), int(np.flatnonzero(face(0, 1)(sim.model.rest))[0])
    assert tip not in sim.pinned
    before = sim.step().positions[tip]
    sim.set_springs([(pinned, tip)], 50.0, 0.0)
    after = sim.step().positions[tip]
    rest_positions = sim.model.rest[pinned]
    assert np.linalg.norm(after - rest_positions) < np.linalg.norm(before - rest_positions) - 0.01
