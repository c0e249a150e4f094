"""Public objects can be pickled and copied, for use in other processes."""

import copy
import multiprocessing
import pickle
import sys

import numpy as np
import pytest
from problems import cantilever, face, material, tied_blocks, twisted

import supple
from supple.materials import MATERIALS
from supple.meshes import TriMesh

COPY_METHODS = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.fixture(params=COPY_METHODS.values(), ids=COPY_METHODS.keys())
def copied(request):
    return request.param


def solve(young: float) -> supple.Result:
    """Equilibrium that is solved in another process."""
    return supple.equilibrium(cantilever(material("corotated", young), cells=2))


def swing(young: float) -> supple.Frame:
    scene = twisted(material("corotated", young), cells=2)
    scene.quasistatic, scene.dt = False, 0.01
    return list(supple.simulate(scene, solver=supple.PBNG(iterations=3), frames=2))[-1]


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("context", ["spawn", "fork"])
def test_results_return_from_other_processes(context):
    if context not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {context} here")
    with multiprocessing.get_context(context).Pool(1) as pool:
        result, frame = pool.apply(solve, (1e3,)), pool.apply(swing, (1e3,))
    local_result = solve(1e3)
    np.testing.assert_array_equal(result.positions, local_result.positions)
    assert result.report.outcome is supple.Outcome.CONVERGED
    assert isinstance(frame, supple.Frame)
    assert (frame.index, frame.time) == (2, 0.02)
    np.testing.assert_array_equal(frame.velocities, swing(1e3).velocities)


def test_unpickled_results_are_usable(copied):
    """A copy has the bodies of the scene, and its model can be solved again."""
    scene = tied_blocks(material("corotated"), material("neo_hookean"))
    result = supple.equilibrium(scene, tolerance=1e-3)
    back = copied(result)
    for body in scene.bodies:
        np.testing.assert_array_equal(back.positions_of(body), result.positions_of(body))
    again = supple.equilibrium(back.model, tolerance=1e-3)
    np.testing.assert_array_equal(again.positions, result.positions)
    assert back.report == result.report
    np.testing.assert_array_equal(back.model.prescribed(np.inf), result.model.prescribed(np.inf), strict=True)


def test_device_arrays_are_not_pickled():
    result = solve(1e3)
    result.on_device = memoryview(b"cannot be pickled")
    assert pickle.loads(pickle.dumps(result)).on_device is None
    assert result.on_device is not None


def test_caches_are_not_pickled():
    result = supple.equilibrium(cantilever(material("corotated"), cells=6), tolerance=0.5)
    before = len(pickle.dumps(result))
    mesh = result.model.bodies[0].mesh
    assert mesh.quality.min() > 0
    assert len(mesh.surface)
    assert len(pickle.dumps(result)) == before
    assert before < 1.1 * result.model.terms[0].gradients.nbytes


@pytest.mark.parametrize("name", MATERIALS)
@pytest.mark.parametrize("young", [1e3, [1e3, 2e3]], ids=["number", "array"])
def test_materials(name, young, copied):
    kind = material(name, young=young)
    back = copied(kind)
    assert type(back) is type(kind)
    assert back == kind
    assert hash(back) == hash(kind)


def test_equality_of_materials_includes_their_class():
    corotated, neo = material("corotated"), material("neo_hookean")
    assert corotated != neo
    assert not corotated == neo  # noqa: SIM201
    assert hash(corotated) != hash(neo)
    assert corotated == material("corotated")
    assert corotated != material("corotated", young=2e3)
    assert corotated != tuple(corotated)


def test_meshes_stay_read_only(copied):
    for mesh in (supple.block(1), TriMesh(np.eye(3), [[0, 1, 2]])):
        back = copied(mesh)
        np.testing.assert_array_equal(back.points, mesh.points)
        assert not back.points.flags.writeable


def test_scenes(copied):
    scene = twisted(material("corotated"), cells=2)
    back = copied(scene)
    np.testing.assert_array_equal(
        supple.equilibrium(back, tolerance=1e-2).positions,
        supple.equilibrium(scene, tolerance=1e-2).positions,
    )


def test_scene_files(copied, tmp_path):
    path = tmp_path / "bar.toml"
    path.write_text(
        "[[solid]]\nmesh = { block = { cells = [1, 1, 1] } }\n"
        "material = { corotated = { young = 1000, poisson = 0.3 } }\n[[pin]]\nwhere = { side = 'x-' }\n"
        "[initial]\nscramble = { seed = 3 }\n[stop]\ntolerance = 1e-3\n"
    )
    file = supple.load_scene(path)
    back = copied(file)
    assert (back.solver, back.stop, back.initial) == (file.solver, file.stop, file.initial)
    assert [body.name for body in back.scene.bodies] == ["solid0"]


def test_variations_with_their_scene():
    scene = twisted(material("corotated"), cells=2)
    variation = supple.Variation(pins={scene.pins[1].on: supple.Translate((0.1, 0, 0))})
    restored, varied = pickle.loads(pickle.dumps((scene, variation)))
    (result,) = supple.equilibria(restored, [varied], tolerance=1e-2)
    (expected,) = supple.equilibria(scene, [variation], tolerance=1e-2)
    np.testing.assert_array_equal(result.positions, expected.positions)


def bent(points, t):
    """A custom motion that is a named function."""
    return points + np.array([0, 0.1 * min(t, 1), 0])


def moving(motion) -> supple.Scene:
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(1), material("corotated"), name="cube")
    scene.pin(body.where(face(0, 0)), motion)
    return scene


def test_named_custom_motions_can_be_pickled():
    model = pickle.loads(pickle.dumps(supple.scene.build_model(moving(bent))))
    np.testing.assert_allclose(model.prescribed(1.0)[0], [0, 0.1, 0])


def test_unnamed_motions_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    scene = moving(lambda points, t: points)
    with pytest.raises(pickle.PicklingError, match="motion of pinned vertices of 'cube' cannot be pickled"):
        pickle.dumps(scene)
    assert copy.deepcopy(scene).pins[0].motion is scene.pins[0].motion


def test_unnamed_motions_use_cloudpickle(monkeypatch):
    """Ray and joblib pickle lambdas in the same way."""

    class Cloudpickle:
        loads, dumps = staticmethod(lambda data: bent), staticmethod(lambda function: b"bent")

    monkeypatch.setitem(sys.modules, "cloudpickle", Cloudpickle)
    state = moving(lambda points, t: points).pins[0].__getstate__()
    loads, (data,) = state["motion"].__reduce__()
    assert loads(data) is bent


def test_repr_is_short():
    scene = tied_blocks(material("corotated"), material("neo_hookean"))
    result, frame = supple.equilibrium(scene, tolerance=1e-3), swing(1e3)
    for entry in (result, frame):
        assert len(str(entry).splitlines()) <= 6
    for entry in (
        result,
        frame,
        result.model,
        scene,
        scene.bodies[0],
        scene.bodies[0].mesh,
        scene.pins[0].on,
    ):
        assert "\n" not in repr(entry)
        assert len(repr(entry)) < 160
    assert repr(result).startswith("<Result: converged, 54 vertices")
    assert repr(frame).startswith("<Frame 2 at 0.02 s: fixed iterations")
    assert str(frame).startswith("Frame 2 at 0.02 s: Completed the requested iterations")
    assert "'solid0', 'solid1'" in repr(scene)


def test_repr_of_large_scenes_is_one_line():
    scene, mesh = supple.Scene(), supple.block(4)
    for _ in range(20):
        body = scene.add_solid(mesh, material("corotated", young=np.linspace(1e3, 2e3, mesh.n_tets)))
    for entry in (scene, body):
        assert "\n" not in repr(entry)
        assert len(repr(entry)) < 160
    assert "'solid0', 'solid1', 'solid2' and 17 more" in repr(scene)


def test_repr_of_reports_omits_history():
    report = supple.equilibrium(cantilever(material("corotated")), tolerance=0.1, record_history=True).report
    assert report.history is not None
    assert "History" not in repr(report)
