"""Contact sums of kernels for reports against NumPy sums over all contacts."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from fake_device import fake_device  # noqa: F401

import supple
from supple.collision import distances_to
from supple.config.backend import Backend
from supple.config.stop_criteria import StopCriteria
from supple.contact.state.obstacle_report import report_obstacle_contact
from supple.solve.batch_solve import make_problem, solve
from supple.terms.contact.penalty import force_change, forces_on_bodies, forces_on_vertices


def pile(contact="none"):
    """Two stacked blocks in a corner of a floor and two walls, pinned at one edge."""
    scene = supple.Scene(gravity=(2, -9.81, 1), quasistatic=False, dt=0.01, contact=contact)
    for k in range(2):
        block = supple.block(cells=3, size=(0.4, 0.4, 0.4)).translated((0.05 * k, 0.4005 * k, 0.0))
        body = scene.add_solid(block, supple.StableNeoHookean(young=2e3, poisson=0.3), density=100)
    scene.pin(body.where(lambda X: (X[:, 0] < 0.06) & (X[:, 1] > 0.8)))
    scene.add_obstacle(supple.Plane(), friction=0.2, name="floor")
    scene.add_obstacle(supple.Plane(normal=(-1, 0, 0), point=(0.46, 0, 0)), name="wall")
    scene.add_obstacle(supple.Box(size=(2, 2, 0.1), center=(0, 0, 0.46)), friction=0.1, name="box")
    scene.add_obstacle(supple.Sphere(radius=0.1, center=(9, 9, 9)), name="away")
    return scene


def balanced_problem(device="cpu", contact="none", precision="float32", steps=8):
    problem = make_problem(pile(contact), False, Backend(device=device, precision=precision))
    problem.loads.set_time_step(0.01)
    for k in range(1, steps + 1):
        problem.begin_step(0.01 * k, 0.01)
        solve(problem, supple.PBNG(), StopCriteria(max_iterations=30))
    return problem


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_obstacle_report_equals_sums_over_vertices(device, fake_device):  # noqa: F811
    problem = balanced_problem(device)
    (contact,) = report_obstacle_contact(problem)
    report = contact.obstacles
    model, contacts = problem.model, problem.contacts
    normals, feet, forces, which = contacts.get_planes(0)
    owner, u = contacts.obstacles.obstacle, problem.states.vectors(problem.u)[0].astype(float)
    pushes = (normals * forces).sum(axis=2)
    distances = (normals * (u - feet)).sum(axis=2)
    distance, _, nearest = distances_to(contacts.shapes, model.rest + u)
    assert report.count > 10
    assert report.complementarity == pytest.approx(np.abs(pushes * distances).sum(), rel=1e-9, abs=1e-12)
    for name, own in model.body_vertices:
        np.testing.assert_allclose(report.forces[name], forces[:, own].sum(axis=(0, 1)), rtol=1e-9, atol=1e-9)
    for k, each in enumerate(report.each):
        mine = (which >= 0) & (owner[which] == k)
        np.testing.assert_allclose(each.force, -forces[mine].sum(axis=0), rtol=1e-9, atol=1e-9)
        assert each.count == (pushes[mine] > 0).sum()
        least = distance[model.free & (owner[nearest] == k)].min(initial=np.inf)
        assert each.max_penetration == pytest.approx(max(0.0, -least), abs=1e-12)
        if k < len(report.each) - 1:
            assert each.min_gap == pytest.approx(max(0.0, least), abs=1e-12)
    assert report.each[-1].min_gap is None, "no vertex is nearest to it"
    assert report.min_gap == min(each.min_gap for each in report.each[:-1])


def test_report_has_the_forces_at_the_end_of_the_solve():
    problem = make_problem(pile(), False, Backend(precision="float64"))
    problem.loads.set_time_step(0.01)
    for k in range(1, 6):
        problem.begin_step(0.01 * k, 0.01)
        report = solve(problem, supple.PBNG(), StopCriteria(max_iterations=7))
        assert report.contact == report_obstacle_contact(problem)[0]
    assert report.contact.obstacles.count > 0
    assert report.contact.bodies is None


@pytest.mark.parametrize("method", ["weak", "barrier"])
def test_contacts_with_bodies_and_obstacles_are_in_one_report(method):
    frame = next(supple.simulate(pile(method), solver=supple.PBNG(iterations=5), frames=1))
    report, contact = frame.report, frame.report.contact
    assert [each.name for each in contact.obstacles.each] == ["floor", "wall", "box", "away"]
    assert contact.obstacles.count > 0
    assert set(contact.bodies.forces) == set(contact.obstacles.forces) == {"solid0", "solid1"}
    assert contact.faces.each == ()
    assert not contact.is_intersecting
    for part in (contact.bodies, contact.obstacles):
        assert str(part) in str(report)
    stored = json.loads(json.dumps(report.to_dict()))["contact"]
    assert list(stored) == ["bodies", "obstacles", "faces", "is_intersecting"]
    for name in ("bodies", "obstacles"):
        part = getattr(contact, name)
        for key, value in stored[name].items():
            if key == "forces":
                assert value == {body: list(force) for body, force in part.forces.items()}
            elif key not in ("each", "passages"):
                assert value == getattr(part, key)
    assert stored["obstacles"]["passages"] == []
    for entry, each in zip(stored["obstacles"]["each"], contact.obstacles.each, strict=True):
        assert entry == asdict(each) | {"force": list(each.force)}
    assert stored["faces"] == {"count": 0, "max_penetration": 0.0, "is_intersecting": False, "each": []}
    assert (stored["bodies"]["pin_lag"] is None) == (method == "weak")
    assert (stored["bodies"]["edge_intersections"] is None) == (method == "barrier")


def test_scenes_without_contact_have_no_contact_report():
    scene = supple.Scene()
    scene.pin(scene.add_solid(supple.block(1), supple.Corotated(young=1e5, poisson=0.3)).where([0, 1, 2]))
    report = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-2).report
    assert report.contact is None
    assert report.to_dict()["contact"] is None


def test_rest_stiffness_does_not_overwrite_evaluated_forces():
    problem = balanced_problem(steps=4)
    problem.diagnostics.balances()
    forces = problem.states.net[:-1], problem.contacts.planes.reaction[:, :-1]
    before = [array.copy() for array in forces]
    problem.diagnostics.rest_compliance.invalidate()
    assert problem.diagnostics.rest_compliance.norms[0] > 0
    for array, original in zip(forces, before, strict=True):
        assert np.array_equal(array, original)
    assert np.abs(before[1]).max() > 0


def weak():
    """Frictional weak contacts of bodies, and small displacements from them."""
    problem = balanced_problem(contact=supple.Contact("weak", friction=0.3), precision="float64")
    term = next(term for term in problem.model.terms if term.name == "contacts")
    assert len(term.vertices) > 5
    u = problem.states.vectors(problem.u)[0]
    return problem, term, u + 1e-3 * np.random.default_rng(0).normal(size=u.shape)


def test_forces_between_bodies_equal_sums_over_contacts():
    problem, term, u = weak()
    r, actual, expected = term.forces(u), term.response(u), np.zeros(u.shape)
    assert actual.slides.any()
    assert not actual.slides.all()
    np.add.at(expected, term.vertices, term.weights[:, :, None] * r[:, None])
    np.testing.assert_allclose(forces_on_vertices(term, u), expected, rtol=1e-9, atol=1e-9)
    contact = problem.model.dynamic_terms[0][1]
    rest, names = problem.model.rest, problem.model.body_vertices
    forces, work = forces_on_bodies(term, u, rest, contact.surfaces.body, len(names))
    sums = [expected[own].sum(axis=0) for _, own in names]
    np.testing.assert_allclose(forces, sums, atol=1e-9 * np.abs(sums).max())
    assert work == pytest.approx((actual.normal_force * np.abs(term.distances(rest + u))).sum())


def test_contact_changes_are_counted_once_per_vertex():
    _, term, u = weak()
    changed_term = type(term)(term.vertices[3:], term.weights[3:], 0.5 * term.numbers[3:])
    before, now = forces_on_vertices(term, u), forces_on_vertices(changed_term, u)
    expected = np.abs(now - before).max(), np.abs(now).max(), np.linalg.norm(now - before)
    assert force_change(term, changed_term, u) == pytest.approx(expected)
    assert force_change(term, term, u)[0] == 0


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_steps_of_unused_lanes_are_not_rejected(precision):
    """Frictional vertices on a floor leave some lanes unused."""
    for frame in supple.simulate(pile(), solver=supple.PBNG(iterations=10), frames=6, precision=precision):
        assert frame.report.rejected == 0
    assert frame.report.contact.obstacles.count > 0


@pytest.mark.parametrize("young", [5e4, 5e5])
@pytest.mark.parametrize("friction", [0.0, 0.3])
def test_block_at_rest_on_a_plane_is_stable(young, friction):
    """Friction of outward sliding vertices is not a dead load, which would destabilize rotation."""
    scene = supple.Scene()
    scene.add_solid(supple.block(2), supple.Corotated(young=young, poisson=0.45), density=1000)
    scene.add_obstacle(supple.Plane(point=(0, 0, 0), normal=(0, 1, 0)), friction=friction)
    report = supple.equilibrium(scene).report
    assert report.ok, report
    assert report.error_estimate.stable
