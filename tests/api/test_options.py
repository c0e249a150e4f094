"""StopCriteria and Backend in every call, spellings of accelerations, and declared properties of solvers."""

import inspect
import pickle

import numpy as np
import pytest
from problems import cantilever, material

import supple
from supple import PBNG, Backend, StopCriteria
from supple.api.solver_syntax import parse_solver
from supple.config.stop_criteria import DEFAULT_TOLERANCE
from supple.solve.call_options import LIMITS, Options
from supple.solvers import (
    DEFAULT_SOLVER,
    SOLVERS,
    SOR,
    Anderson,
    Chebyshev,
    PaperChebyshev,
    PaperSOR,
    Solver,
    default_solver,
)
from supple.solvers.acceleration import ACCELERATIONS, acceleration_of
from supple.solvers.options import (
    changed_options,
    option_names,
    plain_options,
    solver_label,
    typed_options,
)


def scene() -> supple.Scene:
    return cantilever(material("corotated"), cells=1)


def dynamic() -> supple.Scene:
    made = scene()
    made.quasistatic, made.dt = False, 0.01
    return made


CALLS = {
    "equilibrium": lambda **o: supple.equilibrium(scene(), **o).report,
    "simulate": lambda **o: next(supple.simulate(dynamic(), frames=1, **o)).report,
    "equilibria": lambda **o: next(supple.equilibria(scene(), [supple.Variation()], **o)).report,
    "Stepper": lambda **o: supple.Stepper(dynamic(), 0.01, **o).step().report,
    "compare": lambda **o: supple.compare(scene(), "pbng", **o).trials[0].report,
}
EACH_CALL = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@EACH_CALL
def test_stop_and_backend_equal_their_separate_arguments(call):
    limits = {"tolerance": 1e-3, "max_iterations": 7, "time_limit": 50.0}
    where = {"device": "cpu", "precision": "float32", "threads": 1}
    combined, separate = call(stop=StopCriteria(**limits), backend=Backend(**where)), call(**limits, **where)
    for report in (combined, separate):
        assert (report.tolerance, report.max_iterations) == (1e-3, 7)
        assert (report.precision, report.threads) == ("float32", 1)
    assert (combined.iterations, combined.relative_residual) == (
        separate.iterations,
        separate.relative_residual,
    )


@EACH_CALL
def test_stop_means_the_same_in_every_call(call):
    """A StopCriteria object gets no additional default tolerance."""
    report = call(stop=StopCriteria(max_iterations=3))
    assert (report.tolerance, report.iterations) == (None, 3)


@EACH_CALL
def test_defaults_are_the_same_in_every_call(call, request):
    report = call()
    assert report.precision == Backend().precision == "float64"
    if "compare" not in request.node.name:  # which has a count, so that curves are equally long
        assert report.tolerance == DEFAULT_TOLERANCE
        assert call(stop=StopCriteria()).tolerance == DEFAULT_TOLERANCE


@EACH_CALL
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"stop": StopCriteria(1e-3), "tolerance": 1e-3},
            r"give either stop=supple.StopCriteria\(...\) or tolerance, not both",
        ),
        ({"stop": StopCriteria(1e-3), "tolerance": None}, r"or tolerance, not both"),
        ({"stop": StopCriteria(1e-3), "max_iterations": 3}, r"or max_iterations, not both"),
        ({"backend": Backend(), "precision": "float32"}, r"supple.Backend\(...\) or precision, not both"),
        ({"backend": Backend(), "device": "cpu", "threads": 1}, r"or device, threads, not both"),
    ],
)
def test_mixing_both_forms_is_refused(call, options, message):
    with pytest.raises(ValueError, match=message):
        call(**options)


@EACH_CALL
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop": 1e-4}, r"stop must be for example supple.StopCriteria\(tolerance=1e-4\), got 0.0001"),
        ({"backend": "cuda"}, r"backend must be for example supple.Backend\(device='cuda'\), got 'cuda'"),
        ({"tolerence": 1e-4}, r"has no keyword 'tolerence'; did you mean 'tolerance'\?"),
    ],
)
def test_unknown_options_are_refused(call, options, message):
    with pytest.raises(TypeError, match=message):
        call(**options)


@EACH_CALL
def test_none_is_ignored_except_as_tolerance(call):
    report = call(stop=None, backend=None, max_iterations=2, time_limit=None, threads=None, tolerance=None)
    assert (report.iterations, report.tolerance) == (2, None)


@pytest.mark.parametrize(
    "call", [supple.equilibrium, supple.simulate, supple.equilibria, supple.Stepper, supple.compare]
)
def test_signatures_show_all_keywords(call):
    parameters = inspect.signature(call).parameters
    assert set(Options.__annotations__) < set(parameters)
    assert parameters["precision"].default == Backend().precision
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    assert {*LIMITS} <= set(Options.__annotations__)


def test_evaluations_take_a_backend():
    result = supple.equilibrium(scene(), max_iterations=1)
    where = {"precision": "float32", "threads": 1}
    for evaluate in (result.evaluate, lambda **o: supple.evaluate(scene(), result.positions, **o)):
        combined, separate = evaluate(backend=Backend(**where)), evaluate(**where)
        np.testing.assert_array_equal(combined.internal_force, separate.internal_force)
        with pytest.raises(ValueError, match="or threads, not both"):
            evaluate(backend=Backend(), threads=1)
        with pytest.raises(TypeError, match="has no keyword 'tolerance'"):
            evaluate(tolerance=1e-3)
    assert "backend" in inspect.signature(supple.evaluate).parameters
    assert "stop" not in inspect.signature(supple.evaluate).parameters


def test_stop_replaces_all_criteria_of_a_file(tmp_path):
    (tmp_path / "bar.toml").write_text(
        "[[solid]]\nmesh = { block = { cells = [1, 1, 1] } }\n"
        "material = { corotated = { young = 1000, poisson = 0.3 } }\n[[pin]]\nwhere = { side = 'x-' }\n"
        "[solver]\nmethod = 'pbng'\nacceleration = { kind = 'anderson', window = 3 }\n"
        "[stop]\ntolerance = 1e-2\n"
    )
    file = supple.load_scene(tmp_path / "bar.toml")
    assert supple.equilibrium(file).report.tolerance == 1e-2
    assert supple.equilibrium(file, max_iterations=1).report.tolerance == 1e-2
    report = supple.equilibrium(file, stop=StopCriteria(max_iterations=1)).report
    assert (report.tolerance, report.iterations) == (None, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"device": "gpu"}, {"precision": "double"}, {"threads": 0}, {"threads": 1.5}, {"device": None},
    ],
    ids=str,
)  # fmt: skip
def test_backend_checks_its_arguments(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        Backend(**wrong)


@pytest.mark.parametrize(
    "options", [StopCriteria(1e-4, 3, 2.0), Backend("cuda", "float32", 2), PBNG(SOR(1.2))], ids=repr
)
def test_options_are_hashable_values(options):
    assert pickle.loads(pickle.dumps(options)) == options
    assert hash(options) == hash(pickle.loads(pickle.dumps(options)))


# --- accelerations ------------------------------------------------------------------------------------------

VARIANTS = [
    None, SOR(), SOR(omega=1.2), Chebyshev(), Chebyshev(rho=0.9, gamma=1.1, first_iteration=3), Anderson(),
    PaperSOR(), PaperSOR(omega=1.3), PaperChebyshev(),
    Anderson(window=5),
]  # fmt: skip


@pytest.mark.parametrize("acceleration", VARIANTS, ids=repr)
def test_every_spelling_of_an_acceleration_is_equivalent(acceleration):
    solver = PBNG(acceleration=acceleration, tied_groups=False)
    assert PBNG(**plain_options(solver)) == solver
    assert PBNG(**changed_options(solver)) == solver
    kind = "none" if acceleration is None else acceleration.kind
    typed = [f"{name}={value}" for name, value in typed_options(solver).items()]
    assert parse_solver(":".join(["pbng", *typed, f"acceleration={kind}"])) == solver
    if acceleration == acceleration_of(kind):
        assert PBNG(kind, tied_groups=False) == solver
        assert kind in solver_label(solver) or acceleration == PBNG().acceleration


def test_all_accelerations_are_tested():
    assert {type(a).kind for a in VARIANTS if a is not None} == ACCELERATIONS.keys()
    assert [*PBNG.parts["acceleration"]] == ["sor", "chebyshev", "anderson", "paper_sor", "paper_chebyshev"]


def test_labels_show_options_that_differ_from_defaults():
    labels = {PBNG(): "pbng", PBNG(None): "pbng none", PBNG("sor"): "pbng sor"}
    labels |= {PBNG(SOR(1.5)): "pbng sor omega=1.5", PBNG(Anderson(5)): "pbng anderson window=5"}
    assert {solver: solver_label(solver) for solver in labels} == labels


# --- what solvers say of themselves -------------------------------------------------------------------------

EACH_SOLVER = pytest.mark.parametrize("kind", SOLVERS.values(), ids=SOLVERS)


@EACH_SOLVER
def test_every_solver_runs_in_its_declared_precisions(kind):
    for precision in kind.precisions:
        report = supple.equilibrium(scene(), solver=kind(), max_iterations=2, precision=precision).report
        assert (report.solver, report.precision) == (kind.name, precision)
    assert "cpu" in kind.devices


@EACH_SOLVER
def test_refusals_name_solvers_with_the_precision(kind):
    for precision in {"float32", "float64"} - {*kind.precisions}:
        with pytest.raises(ValueError, match=f"{kind.name} supports .* only; use pbng, .* for '{precision}'"):
            supple.equilibrium(scene(), solver=kind(), precision=precision)
    with pytest.raises(ValueError, match=r"supports .* only; use .* for 'float16'"):
        kind().check_support("cpu", "float16")


@EACH_SOLVER
def test_backend_adapts_to_the_capabilities_of_a_solver(kind):
    for requested in (Backend("cuda", "float32", 2), Backend("cpu", "float64", 2)):
        backend = requested.fallback_for(kind())
        assert backend.threads == 2
        assert backend.device in kind.devices
        assert backend.precision in kind.precisions
        able = requested.device in kind.devices and requested.precision in kind.precisions
        assert (backend == requested) == able


@EACH_SOLVER
def test_parts_of_solvers_are_options(kind):
    assert {*kind.parts} <= {*option_names(kind)}
    assert plain_options(kind()).keys() == {*option_names(kind)}
    assert kind(**plain_options(kind())) == kind()
    assert changed_options(kind()) == {}


@EACH_SOLVER
def test_solvers_have_distinct_colors(kind):
    from supple.view.style import DARK, LIGHT

    for theme in (LIGHT, DARK):
        others = [theme.curve(name) for name in SOLVERS if name != kind.name]
        assert theme.curve(kind.name) not in [*others, theme.accent]


def test_default_solver_is_the_same_everywhere():
    """Python, scene files, text and the live page share one default."""
    from supple.scene.files.scene_table import SceneTable

    assert type(default_solver()) is DEFAULT_SOLVER
    assert SceneTable().solver.method == DEFAULT_SOLVER.name
    assert supple.equilibrium(scene(), max_iterations=1).report.solver == DEFAULT_SOLVER.name


def test_custom_solver_inherits_default_properties():
    class Own(Solver):
        name = "own"

        def begin(self, problem):
            pytest.fail("begin was called")

    own = Own()
    assert (own.damping, own.iterations, own.batches, own.solves_systems) == (0.0, None, False, False)
    assert own.memory(supple.scene.build_model(scene()), 8) == 0


@pytest.mark.parametrize("acceleration", VARIANTS, ids=repr)
def test_memory_counts_arrays_of_an_acceleration(acceleration):
    from supple.problem import Problem

    model = supple.scene.build_model(cantilever(material("corotated"), cells=3))
    solver = PBNG(acceleration=acceleration)
    for precision in ("float32", "float64"):
        problem = Problem(model, precision)
        run = solver.begin(problem).acceleration
        arrays = [a for a in run.prepare_sweeps(1) if isinstance(a, np.ndarray)]
        arrays += [run._best] if hasattr(run, "_best") else []
        total_bytes = sum(array.nbytes for array in arrays)
        assert solver.memory(model, problem.dtype.itemsize) == pytest.approx(total_bytes, rel=0.02, abs=100)
