"""evaluate(): forces, reactions, energies, deformations and stresses at given positions."""

import pickle

import numpy as np
import pytest
from closed_forms import PRINCIPAL_STRESS, uniaxial
from fake_device import fake_device  # noqa: F401
from problems import (
    BARRIERS,
    HAND_WRITTEN,
    PRECISIONS,
    cantilever,
    deformations,
    face,
    material,
    membrane,
    net,
    rotations,
    tied_blocks,
    twisted,
)

import supple
from supple.evaluation import Deformations, Pulls
from supple.problem import Problem

NAMES = pytest.mark.parametrize("name", HAND_WRITTEN)
OBJECTIVE = [name for name, kind in HAND_WRITTEN.items() if kind.objective]

TET = supple.TetMesh([[0, 0, 0], [1, 0.1, 0], [0.2, 0.9, 0], [0.1, 0.2, 1.1]], [[0, 1, 2, 3]])


def body_of(name, mesh=TET, **scene_options):
    scene = supple.Scene(**{"gravity": (0, 0, 0), **scene_options})
    scene.add_solid(mesh, material(name), density=3)
    return scene


def piola(name, F):
    """P from the principal stresses of closed_forms.py."""
    kind = material(name)
    if not kind.objective:
        strain = (F + F.T) / 2 - np.eye(3)
        return 2 * kind.mu * strain + kind.lam * np.trace(strain) * np.eye(3)
    U, s, Vt = np.linalg.svd(F)
    return U @ np.diag(PRINCIPAL_STRESS[name](s, kind.mu, kind.lam)) @ Vt


@NAMES
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("mesh", [TET, supple.block(2)], ids=["one tetrahedron", "a block"])
def test_stresses_are_those_of_the_material(name, precision, mesh):
    """In every element of a body that is deformed evenly, also by a simple shear."""
    rtol = 1e-10 if precision == "float64" else 2e-4
    shear = np.eye(3)
    shear[0, 1] = 0.4
    model = supple.build_model(body_of(name, mesh))
    for F in [shear, *deformations(3)]:
        found = supple.evaluate(model, mesh.points @ F.T + [1, 2, 3], precision=precision)
        P, J = piola(name, F), np.linalg.det(F)
        sigma = P if name == "linear_elastic" else P @ F.T / J
        size = np.abs(sigma).max()
        deviator = sigma - np.trace(sigma) / 3 * np.eye(3)
        expected = {
            "deformation_gradient": F,
            "volume_ratio": J,
            "piola": P,
            "cauchy": sigma,
            "von_mises": np.sqrt(1.5 * (deviator**2).sum()),
            "pressure": -np.trace(sigma) / 3,
            "principal_stresses": np.sort(np.linalg.eigvalsh(sigma))[::-1],
            "principal_stretches": np.linalg.svd(F)[1],
        }
        for field, value in expected.items():
            values = getattr(found, field)
            assert values.shape == (mesh.n_tets, *np.shape(value))
            scale = 1 if field in ("deformation_gradient", "volume_ratio", "principal_stretches") else size
            np.testing.assert_allclose(values, np.broadcast_to(value, values.shape), atol=rtol * scale)


@NAMES
def test_a_pulled_bar_has_uniaxial_stress(name):
    """With free sides: the nominal stress of closed_forms.py, over the area that is left."""
    kind, stretch = material(name), 1.2
    lateral, nominal = uniaxial(name, stretch, kind.mu, kind.lam)
    scene = body_of(name, supple.block((3, 1, 1), (3, 1, 1)))
    (bar,) = scene.bodies
    for end in (0, 3):
        scene.pin(bar.where(face(0, end)), name=f"end{end}")
    found = supple.evaluate(scene, bar.points * [stretch, lateral, lateral])
    area = 1 if name == "linear_elastic" else lateral**2
    np.testing.assert_allclose(found.von_mises, nominal / area, rtol=1e-9)
    np.testing.assert_allclose(found.principal_stresses[:, 0], nominal / area, rtol=1e-9)
    assert list(found.reactions) == ["end0", "end3"]
    np.testing.assert_allclose(found.reactions["end3"].force, [nominal, 0, 0], atol=1e-9 * nominal)
    np.testing.assert_allclose(found.reactions["end0"].force, [-nominal, 0, 0], atol=1e-9 * nominal)
    np.testing.assert_allclose(found.reactions["end3"].moment, 0, atol=1e-9 * nominal)
    np.testing.assert_allclose(found.reactions["end3"].centre, [3 * stretch, lateral / 2, lateral / 2])


@NAMES
def test_forces_are_slopes_of_the_energy(name):
    """At every vertex, pinned ones included, with loads and attachments."""
    scene = tied_blocks(material(name), material("corotated"), cells=1)
    scene.add_force(scene.bodies[0], (1.0, 2.0, 3.0))
    model, random = supple.build_model(scene), np.random.default_rng(0)
    x = model.rest + random.uniform(-0.05, 0.05, model.rest.shape)
    found, h = supple.evaluate(model, x), 1e-6
    for direction in random.normal(size=(5, *x.shape)):
        ends = [supple.evaluate(model, x + s * h * direction).energy for s in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * h)
        assert -(found.net_force * direction).sum() == pytest.approx(slope, rel=1e-6)


@NAMES
def test_energies_add_up(name):
    scene = tied_blocks(material(name), material("corotated"), cells=1)
    model = supple.build_model(scene)
    x = model.rest + np.random.default_rng(1).uniform(-0.05, 0.05, model.rest.shape)
    found, problem = supple.evaluate(model, x), Problem(model, "float64")
    problem.positions = x
    assert found.stored_energy == pytest.approx(problem.measures.stored_energies().sum(), rel=1e-12)
    pulls = next(term for term in found.terms if isinstance(term, Pulls))
    assert sum(found.body_energies.values()) + pulls.element_energy.sum() == pytest.approx(
        found.stored_energy, rel=1e-12
    )
    assert list(found.body_energies) == ["solid0", "solid1"]
    assert min(found.body_energies.values()) > 0
    volumes = np.concatenate([body.mesh.volumes for body in scene.bodies])
    np.testing.assert_allclose(found.energy_density * volumes, found.element_energy, rtol=1e-12)
    assert found.load_energy == pytest.approx(-(model.force * (x - model.rest)).sum(), rel=1e-12)


def test_tetrahedra_come_body_after_body():
    """Though bodies of one kind of material are one term."""
    scene = supple.Scene(gravity=(0, 0, 0))
    kinds = "corotated", "neo_hookean", "corotated"
    for k, name in enumerate(kinds):
        scene.add_solid(supple.block(1, origin=(2.0 * k, 0, 0)), material(name))
    model = supple.build_model(scene)
    x = model.rest.copy()
    for body, stretch in zip(scene.bodies, (1.1, 1.2, 1.3), strict=True):
        x[body.vertices] *= [stretch, 1, 1]
    found = supple.evaluate(model, x)
    np.testing.assert_array_equal(found.vertices, model.tets)
    np.testing.assert_allclose(found.volume_ratio, np.repeat([1.1, 1.2, 1.3], 5))


def balanced(scene, **options):
    result = supple.equilibrium(scene, "newton", tolerance=1e-11, **options)
    return result, result.evaluate()


@pytest.mark.parametrize("name", ["corotated", "log_neo_hookean"])
def test_reactions_carry_the_loads(name):
    """Forces and moments of loads and reactions vanish together, about any point."""
    scene = cantilever(material(name), cells=2)
    (block,) = scene.bodies
    scene.add_force(block.where(face(0, 1)), (3.0, -2.0, 1.0))
    result, found = balanced(scene)
    free, size = result.model.free, np.abs(found.reaction_force).max()
    assert np.abs(found.net_force[free]).max() < 1e-6 * size
    np.testing.assert_array_equal(found.reaction_force[free], 0)
    (reaction,) = found.reactions.values()
    x, loads = found.positions, found.external_force
    np.testing.assert_allclose(reaction.force, -loads.sum(axis=0), atol=1e-6 * size)
    about = np.cross(x - reaction.centre, loads).sum(axis=0)
    np.testing.assert_allclose(reaction.moment, -about, atol=1e-6 * size)
    np.testing.assert_array_equal(reaction.forces, found.reaction_force[reaction.vertices])


def test_attachments_carry_loads_too():
    """What pins do not hold, springs to fixed points do."""
    scene = body_of("neo_hookean", supple.block(2), gravity=(0, -10, 0))
    (block,) = scene.bodies
    scene.pin(block.where(face(0, 0)))
    scene.attach(block.where(face(0, 1)), stiffness=50.0)
    _, found = balanced(scene)
    pulls = found.terms[1]
    total = found.reactions["pin0"].force + pulls.force.sum(axis=0) + found.external_force.sum(axis=0)
    assert pulls.force[:, 1].min() > 0.1
    np.testing.assert_allclose(total, 0, atol=1e-7)


def test_a_vertex_of_two_pins_counts_once():
    scene = cantilever(material("corotated"), cells=2)
    (block,) = scene.bodies
    scene.pin(block.where(face(1, 0)) & block.where(face(0, 0)), name="edge")
    scene.pin(block.where([26]), name="corner")
    _, found = balanced(scene)
    assert list(found.reactions) == ["pin0", "edge", "corner"]
    np.testing.assert_array_equal(found.reactions["edge"].force, 0)
    total = sum(reaction.force for reaction in found.reactions.values())
    np.testing.assert_allclose(total, -found.external_force.sum(axis=0), atol=1e-7)


@pytest.mark.parametrize("name", OBJECTIVE)
def test_turning_a_body_turns_its_stress(name):
    model = supple.build_model(body_of(name, supple.block(1)))
    x = model.rest + np.random.default_rng(3).uniform(-0.1, 0.1, model.rest.shape)
    before = supple.evaluate(model, x)
    size = np.abs(before.cauchy).max()
    np.testing.assert_allclose(before.cauchy, before.cauchy.transpose(0, 2, 1), atol=1e-11 * size)
    for Q in rotations(3):
        after = supple.evaluate(model, x @ Q.T + [5, 6, 7])
        np.testing.assert_allclose(after.cauchy, Q @ before.cauchy @ Q.T, atol=1e-10 * size)
        np.testing.assert_allclose(after.net_force, before.net_force @ Q.T, atol=1e-10 * size)
        for same in ("von_mises", "volume_ratio", "element_energy", "principal_stretches"):
            np.testing.assert_allclose(getattr(after, same), getattr(before, same), atol=1e-9 * size)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_far_from_the_origin_nothing_changes(precision):
    """Displacements are what kernels see: only their own rounding in float64 is lost."""
    near, far = (supple.block(2).translated((d, -d, d)) for d in (0.0, 1e6))
    stresses = []
    for mesh in (near, far):
        moved = mesh.points + 0.1 * np.sin(3 * near.points[:, [1, 2, 0]])
        stresses.append(supple.evaluate(body_of("corotated", mesh), moved, precision=precision).von_mises)
    np.testing.assert_allclose(*stresses, rtol=1e-6 if precision == "float64" else 1e-3)


def test_other_elements_than_tetrahedra():
    """Membranes have the stress of their plane, springs pull."""
    model = membrane("neo_hookean")
    found = supple.evaluate(model, model.rest * [1.3, 0.8, 1])
    (sheet,) = found.terms
    assert isinstance(sheet, Deformations)
    assert len(found.von_mises) == 0
    expected = piola("neo_hookean", np.diag([1.3, 0.8, 1])) * 1e5 / material("neo_hookean").young
    np.testing.assert_allclose(sheet.piola, np.broadcast_to(expected, sheet.piola.shape), atol=1e-5)
    model = net(stiffness=300.0)
    found = supple.evaluate(model, model.rest * 1.1)
    (springs,) = found.terms
    length = np.linalg.norm(np.diff(model.rest[springs.vertices], axis=1)[:, 0], axis=1)
    np.testing.assert_allclose(np.linalg.norm(springs.force, axis=1), 300.0 * 0.1 * length)
    np.testing.assert_allclose(springs.element_energy, 0.5 * 300.0 * (0.1 * length) ** 2)
    assert found.reactions["pins"].vertices.tolist() == model.pinned.tolist()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "make", [net, membrane, lambda: supple.build_model(SCENE)], ids=["net", "membrane", "solid"]
)
def test_devices_do_the_same(precision, make, fake_device):  # noqa: F811
    model = make()
    x = model.rest + np.random.default_rng(4).uniform(-0.03, 0.03, model.rest.shape)
    cpu, device = (supple.evaluate(model, x, precision=precision, device=d) for d in ("cpu", "cuda"))
    atol = 1e-12 if precision == "float64" else 1e-4
    for name in ("internal_force", "cauchy", "deformation_gradient", "element_energy"):
        a, b = getattr(cpu, name), getattr(device, name)
        np.testing.assert_allclose(a, b, atol=atol * max(1, np.abs(a).max(initial=0)))
    for one, other in zip(cpu.terms, device.terms, strict=True):
        np.testing.assert_allclose(one.element_energy, other.element_energy, atol=atol)


SCENE = tied_blocks(material("corotated"), material("stvk"), cells=1)


def test_results_and_frames_evaluate_under_their_own_loads():
    """Gravity that grows: a frame has that of its time, a result of a variation its own."""
    scene = cantilever(material("neo_hookean"), cells=2)
    scene.gravity_ramp = supple.Ramp(times=(0, 1), fractions=(0, 1))
    frame = next(iter(supple.simulate(scene, dt=0.25, frames=1, tolerance=1e-9)))
    model = frame.model
    np.testing.assert_allclose(frame.evaluate().external_force, model.force_at(0.25))
    assert np.abs(frame.evaluate().net_force[model.free]).max() < 1e-5
    late = supple.evaluate(scene, frame.positions)
    np.testing.assert_allclose(late.external_force, model.force_at(1.0))
    early = supple.evaluate(scene, frame.positions, time=0.25)
    np.testing.assert_array_equal(early.net_force, frame.evaluate().net_force)
    (varied,) = supple.equilibria(scene, [supple.Variation(gravity=(0, -3, 0))])
    assert np.abs(varied.evaluate().net_force[model.free]).max() < 1e-3


def test_frames_of_a_motion_balance_with_inertia():
    """Also through a pickle; a body that swings pulls at its pin by more than it weighs."""
    scene = cantilever(material("neo_hookean"), cells=2)
    scene.quasistatic = False
    *_, frame = supple.simulate(scene, dt=0.02, frames=4, tolerance=1e-9)
    found = pickle.loads(pickle.dumps(frame)).evaluate()
    assert np.abs(found.inertial_force).max() > 0.1
    assert np.abs(found.net_force[frame.model.free]).max() < 1e-4
    total = found.reaction_force + found.external_force + found.inertial_force
    np.testing.assert_allclose(total.sum(axis=0), 0, atol=1e-4)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.net_force, found.net_force)
    frame.step = type(frame.step)(frame.step.dt, None)
    assert frame.evaluate().von_mises.shape == found.von_mises.shape
    with pytest.raises(ValueError, match="several substeps"):
        _ = frame.evaluate().net_force


def test_energy_is_that_of_the_report():
    result, found = balanced(twisted(material("corotated"), cells=2))
    assert found.energy == pytest.approx(result.report.energy, rel=1e-12)


def test_inverted_and_flat_elements():
    """J and the last stretch are negative; without volume there is no Cauchy stress, yet no warning."""
    model = supple.build_model(body_of("corotated"))
    inside_out = supple.evaluate(model, model.rest * [1, 1, -0.5])
    np.testing.assert_allclose(inside_out.volume_ratio, -0.5)
    np.testing.assert_allclose(inside_out.principal_stretches, [[1, 1, -0.5]], atol=1e-12)
    corner = supple.TetMesh(np.vstack([np.zeros(3), np.eye(3)]), [[0, 1, 2, 3]])
    flat = supple.evaluate(body_of("corotated", corner), corner.points * [1, 1, 0])
    assert np.isfinite(flat.piola).all()
    assert not np.isfinite(flat.von_mises).any()
    assert not np.isfinite(flat.principal_stresses).any()
    for name in BARRIERS:
        found = supple.evaluate(body_of(name), model.rest * [1, 1, -0.5])
        assert not np.isfinite(found.energy)


def test_all_vertices_may_be_pinned_or_none():
    scene = body_of("corotated", gravity=(0, -1, 0))
    (tet,) = scene.bodies
    loose = supple.evaluate(scene, TET.points)
    assert loose.reactions == {"pins": loose.reactions["pins"]}
    np.testing.assert_array_equal(loose.reactions["pins"].force, 0)
    scene.pin(tet)
    held = supple.evaluate(scene, TET.points)
    np.testing.assert_allclose(held.reactions["pin0"].force, [0, 3 * TET.volumes.sum(), 0], atol=1e-12)
    assert repr(held.reactions["pin0"]).startswith("<Reaction: force [")
    assert "1 cell" in repr(held)


def test_means_at_vertices():
    model = supple.build_model(body_of("corotated", supple.block(2)))
    found = supple.evaluate(model, model.rest)
    np.testing.assert_allclose(found.at_vertices(np.ones(40)), 1.0)
    tensors = found.at_vertices(found.deformation_gradient)
    np.testing.assert_allclose(tensors, np.broadcast_to(np.eye(3), (27, 3, 3)))
    one = found.at_vertices(np.arange(40) == 7)
    assert np.count_nonzero(one) == 4


REFUSED = {
    "shape": ((np.zeros((3, 3)),), {}, r"positions must have shape \(4, 3\)"),
    "NaN": ((TET.points * np.nan,), {}, "positions has NaN or infinite values for 4 of 4"),
    "text": (("here",), {}, "positions must have shape"),
    "time": ((TET.points,), {"time": -1}, "time .* must not be negative"),
    "no time": ((TET.points,), {"time": np.nan}, "time .* must not be negative"),
    "precision": ((TET.points,), {"precision": "half"}, "precision must be"),
    "device": ((TET.points,), {"device": "tpu"}, "device must be"),
    "threads": ((TET.points,), {"threads": 0}, "threads must be"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused(case):
    args, options, sentence = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=sentence):
        supple.evaluate(body_of("corotated"), *args, **options)


def test_a_scene_is_needed():
    with pytest.raises(TypeError, match="a scene is needed"):
        supple.evaluate("scene.toml", TET.points)
    with pytest.raises(ValueError, match="no bodies"):
        supple.evaluate(supple.Scene(), TET.points)


def test_names_of_pins_differ():
    scene = cantilever(material("corotated"), cells=1)
    (block,) = scene.bodies
    with pytest.raises(ValueError, match="already a pin named 'pin0'"):
        scene.pin(block, name="pin0")
    with pytest.raises(ValueError, match="The name of a pin must be text"):
        scene.pin(block, name="a/b")


def test_reactions_of_rollers_have_no_part_along_what_is_free():
    """A block on a floor that slopes: the floor's roller pushes along its normal, a stop along the slope, and
    together they carry the weight."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(supple.block(2), supple.NeoHookean(young=1e5, poisson=0.3), density=100)
    normal = np.array([0.6, 0.8, 0.0])
    slope = np.array([0.8, -0.6, 0.0])
    scene.pin(body.where(lambda X: X[:, 1] <= 0), normal=normal, name="floor")
    scene.pin(body.where(lambda X: X[:, 0] <= 0), normal=slope, name="stop")
    scene.pin(body.where(lambda X: X[:, 2] <= 0), axes="z", name="side")
    found = supple.equilibrium(scene, tolerance=1e-9).evaluate()
    reactions = {name: reaction.force for name, reaction in found.reactions.items()}
    for name, direction in (("floor", normal), ("stop", slope), ("side", (0, 0, 1))):
        np.testing.assert_allclose(np.cross(reactions[name], direction), 0, atol=1e-6)
    np.testing.assert_allclose(sum(reactions.values()), [0, 980, 0], atol=1e-4)


def test_reactions_at_vertices_of_several_rollers_add_up():
    """A wedge between two planes that are not at right angles, whose common edge both of them hold; a clamp
    has what its own vertices need, also where a plane holds them, too."""
    scene = supple.Scene(gravity=(3, -9.8, 1))
    body = scene.add_solid(supple.block(2), supple.NeoHookean(young=1e5, poisson=0.3), density=100)
    steep = np.array([0.6, 0.8, 0.0])
    scene.pin(body.where(lambda X: X[:, 1] <= 0), axes="y", name="floor")
    scene.pin(body.where(lambda X: (X[:, 0] <= 0) | (X[:, 1] <= 0)), normal=steep, name="wall")
    scene.pin(body.where(lambda X: (X[:, 0] >= 1) & (X[:, 1] <= 0)), name="clamp")
    found = supple.equilibrium(scene, tolerance=1e-10).evaluate()
    forces = {name: reaction.forces for name, reaction in found.reactions.items()}
    total = sum(force.sum(axis=0) for force in forces.values())
    np.testing.assert_allclose(total, -100 * np.array([3, -9.8, 1]), atol=1e-4)
    np.testing.assert_allclose(np.cross(forces["floor"], (0, 1, 0)), 0, atol=1e-9)
    np.testing.assert_allclose(np.cross(forces["wall"], steep), 0, atol=1e-9)
    clamped = np.isin(found.reactions["floor"].vertices, found.reactions["clamp"].vertices)
    assert clamped.any()
    assert not forces["floor"][clamped].any()
