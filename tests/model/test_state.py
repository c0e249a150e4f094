"""Motions resumed from a state are bitwise those of an uninterrupted run."""

import pickle

import numpy as np
import pytest
from frame_comparison import frames_equal
from problems import NEWTONS, PBNGS, PRECISIONS, cantilever, material, tied_blocks, twisted

import supple
from supple import BPXPBD, FPXPBD, GPBD, PBD, XPBD, BlockXPBD, State

SOLVERS = {
    **{f"pbng-{name}": solver for name, solver in PBNGS.items()},
    **{f"newton-{name}": solver for name, solver in NEWTONS.items()},
    "xpbd": XPBD(),
    "block_xpbd": BlockXPBD(ordering="clusters"),
    "bpxpbd": BPXPBD(),
    "fpxpbd": FPXPBD(),
    "gpbd": GPBD(),
    "pbd": PBD(stiffness=0.5, damping=0.1),
}


CASES = [
    pytest.param(solver, precision, id=f"{name}-{precision}")
    for name, solver in SOLVERS.items()
    for precision in (("float64",) if name.startswith("newton") else PRECISIONS)
]


@pytest.mark.parametrize("quasistatic", [False, True], ids=["dynamic", "quasistatic"])
@pytest.mark.parametrize(("solver", "precision"), CASES)
def test_resumed_motion_is_bitwise_identical(solver, precision, quasistatic):
    """Pickling stands for a file."""
    scene = twisted(material("corotated"), cells=4)
    options = {
        "dt": 0.2 if quasistatic else 0.01,
        "frames": 5,
        "quasistatic": quasistatic,
        "max_iterations": 4 if solver.name == "newton" else 25,
        "tolerance": 1e-12,
        "precision": precision,
    }
    uninterrupted = list(supple.simulate(scene, solver=solver, **options))
    middle = pickle.loads(pickle.dumps(uninterrupted[1].state))
    parts = list(supple.simulate(scene, solver=solver, initial=middle, first_frame=3, **options))
    assert [frame.index for frame in parts] == [3, 4, 5]
    assert middle.displacements.dtype == precision
    assert all(
        frames_equal(actual, expected) for actual, expected in zip(parts, uninterrupted[2:], strict=True)
    )
    assert not np.array_equal(uninterrupted[2].positions, uninterrupted[4].positions)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_unobserved_substeps_resume_bitwise(precision):
    scene = cantilever(material("stable_neo_hookean"), cells=2)
    options = {"dt": 0.02, "frames": 4, "substeps": 5, "quasistatic": False, "precision": precision}
    solver = XPBD(iterations=3)
    uninterrupted = list(supple.simulate(scene, solver=solver, **options))
    parts = list(
        supple.simulate(scene, solver=solver, initial=uninterrupted[0].state, first_frame=2, **options)
    )
    assert all(
        frames_equal(actual, expected) for actual, expected in zip(parts, uninterrupted[1:], strict=True)
    )


def test_weak_constraints_resume_bitwise():
    scene = tied_blocks(material("corotated"), material("corotated"))
    options = {"dt": 0.02, "frames": 3, "quasistatic": False, "max_iterations": 15}
    uninterrupted = list(supple.simulate(scene, solver=PBNGS["anderson"], **options))
    (last,) = supple.simulate(
        scene, solver=PBNGS["anderson"], initial=uninterrupted[1].state, first_frame=3, **options
    )
    assert frames_equal(last, uninterrupted[2])


def test_equilibrium_is_a_valid_initial_state():
    scene = cantilever(material("corotated"))
    result = supple.equilibrium(scene, precision="float32", tolerance=1e-3)
    again = supple.equilibrium(scene, precision="float32", tolerance=1e-3, initial=result.state)
    assert again.report.iterations == 0
    assert np.array_equal(again.positions, result.positions)


def test_changes_to_a_frame_do_not_change_the_motion():
    scene = cantilever(material("corotated"))
    options = {"dt": 0.01, "frames": 3, "quasistatic": False, "max_iterations": 5}
    expected = list(supple.simulate(scene, **options))
    for frame, untouched in zip(supple.simulate(scene, **options), expected, strict=True):
        assert frames_equal(frame, untouched)
        for array in (frame.positions, frame.velocities, frame.state.displacements, frame.state.velocities):
            array[:] = np.nan


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (State(np.zeros((4, 3)), np.zeros((4, 3))), r"\(64, 3\).* got shape \(4, 3\)"),
        (State(np.zeros((64, 3)), np.zeros(64)), r"\(64, 3\).* got shape \(64,\)"),
        (State(np.zeros((64, 3)), np.full((64, 3), np.inf)), "NaN or infinite values"),
    ],
    ids=["another scene", "no vectors", "infinite"],
)
def test_invalid_states_are_refused(state, sentence):
    with pytest.raises(ValueError, match=sentence):
        next(supple.simulate(cantilever(material("corotated")), initial=state, tolerance=1e-4))


def test_state_excludes_separate_velocities():
    scene, still = cantilever(material("corotated")), np.zeros((64, 3))
    with pytest.raises(ValueError, match="has velocities of its own; omit velocities"):
        supple.simulate(scene, initial=State(still, still), velocities=still, tolerance=1e-4)


def test_velocities_beyond_float32_do_not_end_a_motion():
    """Only input is checked, not the velocities that a motion reaches."""
    scene = cantilever(material("corotated"))
    fast = np.zeros((64, 3))
    fast[-1] = 1e30
    options = {"dt": 1e-6, "frames": 2, "quasistatic": False, "precision": "float32", "max_iterations": 2}
    assert len(list(supple.simulate(scene, velocities=fast, **options))) == 2
