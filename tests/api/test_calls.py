"""Public calls accept convenient forms of their arguments and refuse invalid input before any computation."""

import math
from pathlib import Path

import numpy as np
import pytest
from problems import cantilever, face, material, twisted

import supple
from supple import PBNG, XPBD, Newton
from supple.cli.job import Job
from supple.config.stop_criteria import StopCriteria
from supple.solve.call_options import resolve_solver
from supple.solvers import Solver
from supple.support.arguments import MAX_LENGTH

SCENE = """
frames = 2
[[solid]]
mesh = { block = { cells = [2, 2, 2] } }
material = { corotated = { young = 1000, poisson = 0.3 } }
density = 1
[[pin]]
where = { side = "x-" }
"""


def scene_file(tmp_path: Path, more: str = "") -> supple.scene.SceneFile:
    path = tmp_path / "bar.toml"
    path.write_text(SCENE + more)
    return supple.load_scene(path)


def bar(**options) -> supple.Scene:
    scene = cantilever(material("corotated"), cells=1)
    for name, value in options.items():
        setattr(scene, name, value)
    return scene


# --- what simply works -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pbng", "newton", "xpbd"])
def test_solver_may_be_a_name(name):
    assert supple.equilibrium(bar(), solver=name, max_iterations=1).report.solver == name
    (frame,) = supple.simulate(bar(), solver=name, max_iterations=1)
    (result,) = supple.equilibria(bar(), [supple.Variation()], solver=name, max_iterations=1)
    comparison = supple.compare(bar(), name, max_iterations=1)
    assert {frame.report.solver, result.report.solver, comparison.trials[0].solver.name} == {name}


@pytest.mark.parametrize(
    "call",
    [
        lambda solver: supple.equilibrium(bar(), solver=solver),
        lambda solver: supple.simulate(bar(), solver=solver),
        lambda solver: supple.equilibria(bar(), [], solver=solver),
        lambda solver: supple.compare(bar(), [solver]),
    ],
)
def test_wrong_solvers_are_refused_by_every_call(call):
    with pytest.raises(ValueError, match=r"there is no solver 'newtn'; did you mean 'newton'\?"):
        call("newtn")
    with pytest.raises(TypeError, match=r"must be an instance, supple.PBNG\(\)"):
        call(PBNG)
    with pytest.raises(TypeError, match="a solver must be for example"):
        call(7)


def test_settings_of_scene_file_are_defaults(tmp_path):
    file = scene_file(
        tmp_path, "[solver]\nmethod = 'newton'\n[stop]\ntolerance = 1e-3\nmax_iterations = 50\n"
    )
    report = supple.equilibrium(file).report
    assert (report.solver, report.tolerance, report.ok) == ("newton", 1e-3, True)
    frames = list(supple.simulate(file))
    assert [(f.report.solver, f.report.tolerance) for f in frames] == [("newton", 1e-3)] * 2
    (result,) = supple.equilibria(file, [supple.Variation()])
    assert (result.report.solver, result.report.tolerance) == ("newton", 1e-3)
    comparison = supple.compare(file, ["newton"])
    assert comparison.trials[0].report.tolerance == 1e-3


def test_arguments_override_the_scene_file(tmp_path):
    file = scene_file(tmp_path, "[solver]\nmethod = 'newton'\n[stop]\ntolerance = 1e-3\n")
    report = supple.equilibrium(file, solver="pbng", tolerance=1e-2).report
    assert (report.solver, report.tolerance) == ("pbng", 1e-2)
    report = supple.equilibrium(file, tolerance=None, max_iterations=1).report
    assert (report.tolerance, report.iterations, report.outcome) == (None, 1, supple.Outcome.FIXED_ITERATIONS)


def test_initial_positions_of_scene_file_are_used(tmp_path):
    file = scene_file(tmp_path, "[initial]\nflatten = { axis = 'y', at = 0.5 }\n")
    options = {"tolerance": None, "max_iterations": 1}
    plain = supple.equilibrium(file.scene, solver=PBNG(), **options).positions
    flat = supple.equilibrium(file, solver=PBNG(), **options).positions
    start = file.initial_positions(supple.scene.build_model(file))
    np.testing.assert_array_equal(
        flat, supple.equilibrium(file, solver=PBNG(), initial=start, **options).positions
    )
    assert np.abs(flat - plain).max() > 0.1
    np.testing.assert_array_equal(supple.compare(file, "pbng", max_iterations=1).initial, start)
    (result,) = supple.equilibria(file, [supple.Variation()], solver=PBNG(), **options)
    np.testing.assert_array_equal(result.positions, flat)


def test_initial_velocities_of_scene_file_are_used(tmp_path):
    """`simulate` starts with the file's velocities v(0), unless the call has a start of its own."""
    text = "quasistatic = false\ndt = 0.01\n" + SCENE + "[initial]\nfile = 'begin.npz'\n"
    (tmp_path / "bar.toml").write_text(text)
    file = supple.load_scene(tmp_path / "bar.toml")
    rest = supple.scene.build_model(file).rest
    x, v = rest * [1.0, 1.1, 1.0], np.random.default_rng(0).normal(size=rest.shape)
    np.savez(tmp_path / "begin.npz", positions=x, velocities=v)
    x = file.initial_positions(supple.scene.build_model(file))
    options = {"max_iterations": 2}
    job = Job(file, PBNG(), StopCriteria(max_iterations=2), 2, supple.Backend(), False)
    expected = next(iter(job.solve(None, None))).positions
    assert np.array_equal(next(supple.simulate(file, solver=PBNG(), **options)).positions, expected)
    sim = supple.Stepper(file, solver=PBNG(), **options)
    np.testing.assert_array_equal(sim.velocities, v)
    assert np.array_equal(sim.step().positions, expected)
    (trial,) = supple.compare(file, PBNG(), **options).trials
    np.testing.assert_allclose(trial.positions, expected, atol=1e-12)
    still = next(supple.simulate(file, solver=PBNG(), initial=x, **options)).positions
    assert np.abs(still - expected).max() > 1e-3
    sim.reset(positions=x)
    np.testing.assert_array_equal(sim.step().positions, still)


def test_scene_file_is_accepted_as_scene(tmp_path):
    file = scene_file(tmp_path)
    assert supple.inspect(file)["tets"] == 40
    model = supple.scene.build_model(file)
    assert len(supple.visible_surface(file, model.rest).points) == 26
    assert supple.io.save_frames(file, [model.rest], "npz", tmp_path)["npz"].exists()
    assert repr(file).startswith("<SceneFile ")


@pytest.mark.parametrize(
    ("options", "tolerance", "outcome"),
    [
        ({}, 1e-4, "CONVERGED"),
        ({"solver": PBNG(iterations=3)}, None, "FIXED_ITERATIONS"),
        ({"max_iterations": 3}, 1e-4, "MAX_ITERATIONS"),
        ({"tolerance": 0.1}, 0.1, "CONVERGED"),
    ],
)
def test_simulation_has_a_default_tolerance(options, tolerance, outcome):
    (frame,) = supple.simulate(bar(), **options)
    assert (frame.report.tolerance, frame.report.outcome.name) == (tolerance, outcome)


def test_single_result_can_be_saved(tmp_path):
    scene = bar()
    result = supple.equilibrium(scene)
    with np.load(supple.io.save_frames(scene, result, "npz", tmp_path)["npz"]) as saved:
        np.testing.assert_array_equal(saved["positions"], [result.model.rest, result.positions])


# --- what is refused ---------------------------------------------------------------------------------------

NAN = np.full((8, 3), np.nan)

OBJECTS = {
    "no scene": (lambda: supple.equilibrium(None), "needs a scene: .* got None"),
    "a path": (
        lambda: supple.equilibrium("scenes/twist.toml"),
        "read the file first, with supple.load_scene",
    ),
    "no scene to simulate": (lambda: supple.simulate(None), "needs a scene"),
    "a model to simulate": (
        lambda: supple.simulate(supple.scene.build_model(bar())),
        "needs a scene: .* <Model",
    ),
    "no scene for variations": (lambda: supple.equilibria(None, []), "needs a scene"),
    "no scene to compare": (lambda: supple.compare(None), "needs a scene"),
    "no scene to inspect": (lambda: supple.inspect(None), "needs a scene"),
    "no scene to build": (lambda: supple.scene.build_model(3), "needs a scene"),
    "no variations": (lambda: supple.equilibria(bar(), None), "variations are a list"),
    "one variation": (lambda: supple.equilibria(bar(), supple.Variation()), "variations are a list"),
    "a solid to fill": (lambda: supple.meshes.tetrahedralize(supple.block(1)), "needs a closed surface"),
    "no surface": (lambda: supple.embed(None, supple.block(1)), "surface must be a TriMesh"),
    "no body": (lambda: supple.embed(supple.TriMesh(np.eye(3), [[0, 1, 2]]), None), "embedded in a body"),
    "no mesh": (lambda: supple.meshes.save_mesh(None, "a.vtu"), "save_mesh needs a TetMesh"),
    "no surface of": (lambda: supple.visible_surface(None, NAN), "needs a scene with bodies"),
    "no frames": (
        lambda: supple.io.save_frames(bar(), None, "npz", "out"),
        "frames must be those of simulate",
    ),
    "no scene to save": (lambda: supple.io.save_frames(None, [], "npz", "out"), "needs a scene"),
    "callback": (lambda: supple.equilibrium(bar(), callback=3), "callback must be a function"),
}


@pytest.mark.parametrize(("call", "message"), OBJECTS.values(), ids=OBJECTS.keys())
def test_wrong_objects_are_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def solved(**options):
    return lambda: supple.equilibrium(bar(), **options)


def simulated(**options):
    return lambda: supple.simulate(bar(), **options)


def named(name):
    return lambda: bar().add_solid(supple.block(1), material("corotated"), name=name)


def other_body():
    return supple.equilibrium(bar()).positions_of(twisted(material("corotated"), cells=2).bodies[0])


VALUES = {
    "threads 0": (solved(threads=0), "threads must be a whole number from 1 to"),
    "threads -1": (solved(threads=-1), "threads must be a whole number"),
    "threads 1.5": (simulated(threads=1.5), "threads must be a whole number"),
    "too many threads": (solved(threads=100_000), "threads must be a whole number from 1 to"),
    "iterations nan": (
        solved(max_iterations=math.nan),
        "max_iterations must be a whole number of at least 1",
    ),
    "iterations 1.5": (simulated(max_iterations=1.5), "max_iterations must be a whole number"),
    "iterations 1e30": (solved(max_iterations=10**30), "max_iterations must be a whole number from 1 to"),
    "budget": (solved(time_limit=1e308), "time_limit must lie between 1e-30 and 1e.30"),
    "window": (
        lambda: supple.solvers.Anderson(window=1.5),
        "window must be a whole number from 1 to 30, got 1.5",
    ),
    "tied_groups": (lambda: PBNG(tied_groups="no"), "tied_groups must be True or False, got 'no'"),
    "line search": (lambda: Newton(line_search=1), "line_search must be True or False"),
    "pseudo-time": (lambda: XPBD(pseudo_dt=math.inf), "pseudo_dt must be positive and finite"),
    "a word for a number": (lambda: supple.solvers.SOR(omega="x"), "omega must lie between 0 and 2, got 'x'"),
    "record_history": (solved(record_history="yes"), "record_history must be True or False, got 'yes'"),
    "first frame": (simulated(first_frame=-3), "first_frame must be a whole number of at least 1, got -3"),
    "dt inf": (simulated(dt=math.inf), "dt must be positive and finite"),
    "frames": (simulated(frames=2.5), "frames must be a whole number"),
    "quasistatic": (simulated(quasistatic="no"), "quasistatic must be True or False"),
    "batch_size": (lambda: supple.equilibria(bar(), [], batch_size=0), "batch_size must be a whole number"),
    "worst": (lambda: supple.inspect(bar(), worst=-1), "worst must be a whole number of at least 0, got -1"),
    "empty name": (named(""), "name of a body must be text"),
    "number as name": (named(3), "name of a body must be text"),
    "slash": (named("a/b"), "without slashes"),
    "dots": (named(".."), "the name of a file"),
    "backslash": (named("a\\b"), "without slashes"),
    "long name": (named("a" * 300), "may have 100 letters"),
    "gravity later": (lambda: supple.equilibrium(bar(gravity=(0, math.nan, 0))), "gravity .* finite numbers"),
    "dt later": (lambda: supple.equilibrium(bar(dt=math.inf)), "dt .* finite"),
    "another body": (other_body, "belongs to another scene; the result has 'solid0'"),
    "save_frames dt": (
        lambda: supple.io.save_frames(bar(), [bar()], "npz", "out", dt=0),
        "dt must be positive",
    ),
    "save_frames nan": (lambda: supple.io.save_frames(bar(), [NAN], "npz", "out"), "frame 1 has NaN"),
    "save_mesh nan": (lambda: supple.meshes.save_mesh(supple.block(1), "a.vtu", NAN), "positions has NaN"),
    "visible_surface nan": (lambda: supple.visible_surface(bar(), NAN), "positions has NaN or infinite"),
    "visible_surface shape": (
        lambda: supple.visible_surface(bar(), np.zeros(3)),
        r"must have shape \(8, 3\)",
    ),
    "start": (lambda: supple.compare(bar(), "pbng", initial=NAN), "initial has NaN or infinite values for 8"),
    "young []": (lambda: supple.Corotated(young=[], poisson=0.3), "young must be positive"),
    "young 1e308": (lambda: supple.Corotated(young=1e308, poisson=0.3), "young must lie between 1e-30 and"),
    "young 1e-300": (lambda: supple.Corotated(young=1e-300, poisson=0.3), "young must lie between 1e-30 and"),
    "young text": (lambda: supple.Corotated(young="1e3", poisson=0.3), "young must be positive"),
    "poisson []": (lambda: supple.Corotated(young=1e3, poisson=[]), "poisson must lie between"),
    "two shapes": (lambda: supple.Corotated(young=[1, 2], poisson=[0.1, 0.2, 0.3]), "young has shape"),
    "lam": (lambda: supple.StVK.from_lame(1.0, 1e200), "lam must lie between -1e.30 and 1e.30 Pa"),
}


@pytest.mark.parametrize(("call", "message"), VALUES.values(), ids=VALUES.keys())
def test_wrong_values_are_refused(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        call()


HUGE = {
    "gravity": (lambda: supple.Scene(gravity=(0, 1e200, 0)), r"gravity \[m/s²\] must not exceed 1e.30"),
    "density": (
        lambda: bar().add_solid(supple.block(1), material("corotated"), density=1e200),
        "density .* must not exceed",
    ),
    "tiny density": (
        lambda: bar().add_solid(supple.block(1), material("corotated"), density=1e-200),
        "density .* must be at least 1e-30",
    ),
    "force": (lambda: add_push(bar(), 1e200), "force .* must not exceed"),
    "motion": (lambda: supple.Translate((1e200, 0, 0)), r"offset \[m\] of Translate must not exceed 1e.12"),
    "block": (lambda: supple.block(1, size=1e200), "size must be one finite number or three"),
    "ball": (lambda: supple.ball(1e308), "radius must be positive and finite"),
    "torus": (lambda: supple.meshes.torus(1e308), "major must be positive and finite"),
    "mesh": (
        lambda: bar().add_solid(supple.block(1).scaled(1e12).scaled(1e3), material("corotated")),
        "sizes must be between 1e-12 and 1e.12 m",
    ),
    "tiny mesh": (
        lambda: bar().add_solid(supple.block(1).scaled(1e-20), material("corotated")),
        "sizes must be between 1e-12 and 1e.12 m",
    ),
    "start": (solved(initial=np.full((8, 3), 1e200)), "initial has values up to 1e.200"),
}


def add_push(scene, newtons):
    scene.add_force(scene.bodies[0], (newtons, 0, 0))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("call", "message"), HUGE.values(), ids=HUGE.keys())
def test_huge_numbers_are_refused_at_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.filterwarnings("error")
def test_overflowing_motions_are_refused_at_evaluation():
    scene = supple.Scene(gravity=(0, 0, 0), dt=1.0, frames=3)
    body = scene.add_solid(supple.block(1), material("corotated"))
    scene.pin(body.where(face(0, 0)), lambda X, t: X * np.exp(300.0 * t) * 1e100)
    frames = supple.simulate(scene, solver="pbng", max_iterations=1)
    with pytest.raises(
        supple.SceneError, match=f"beyond {MAX_LENGTH:g} m count as infinite".replace("+", ".")
    ):
        list(frames)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("young", [1e20, 1e-20])
def test_float32_refuses_materials_beyond_its_range(young):
    scene = cantilever(supple.Corotated(young=young, poisson=0.3), cells=1, density=young / 1e3)
    with pytest.raises(
        ValueError, match=r"is outside the range of precision='float32', .* use precision='float64'"
    ):
        supple.equilibrium(scene, precision="float32")
    report = supple.equilibrium(scene, solver="newton").report
    assert report.ok
    assert math.isfinite(report.energy)


def test_float32_refuses_inertia_beyond_its_range():
    scene = bar(quasistatic=False, dt=1e-12)
    with pytest.raises(ValueError, match="inertia, a mass over dt²"):
        next(supple.simulate(scene, solver="pbng", precision="float32"))


def test_custom_solver_is_passed_through():
    class Own(Solver):
        name = "own"

        def begin(self, problem):
            pytest.fail("begin was called")

    own = Own()
    assert resolve_solver(own) is own
