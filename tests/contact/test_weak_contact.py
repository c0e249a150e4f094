"""Contact between bodies by weak constraints that change during the solve."""

from dataclasses import replace

import numpy as np
import pytest

import supple
from supple.contact.weak_contact import report_penalty_contact
from supple.problem import Problem
from supple.solve.termination import check_intersections


def pressed(displacement=0.1, **options):
    """Two blocks with different cells, one above the other, pressed together from above."""
    scene = supple.Scene(gravity=(0, 0, 0), contact=supple.Contact("weak", **options))
    elastic = supple.Corotated(young=1e5, poisson=0.0)
    low = scene.add_solid(supple.block(cells=(3, 3, 3), size=(1, 1, 1)), elastic, name="low")
    gap = supple.block(cells=(2, 2, 2), size=(1, 1, 1)).translated((0, 1.005, 0))
    high = scene.add_solid(gap, elastic, name="high")
    scene.pin(low.where(lambda X: X[:, 1] <= 0), axes="y")
    scene.pin(low.where(lambda X: np.abs(X - (0, 0, 0)).max(axis=1) < 1e-9))
    scene.pin(low.where(lambda X: np.abs(X - (1, 0, 0)).max(axis=1) < 1e-9), axes="z")  # lest it turns
    down = supple.Translate((0, -displacement, 0))
    scene.pin(high.where(lambda X: X[:, 1] > 2), down, axes="y")
    scene.pin(high.where(lambda X: np.abs(X - (0, 2.005, 0)).max(axis=1) < 1e-9), down)
    scene.pin(high.where(lambda X: np.abs(X - (1, 2.005, 0)).max(axis=1) < 1e-9), axes="z")
    return scene


def test_pressed_blocks_act_as_springs_in_series():
    """The stiffness is E A/H of each block, less the small compliance of the constraints."""
    scene = pressed()
    result = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-5, position_tolerance=None)
    contacts = result.report.contact.bodies
    assert result.report.ok
    assert contacts.count >= 9
    assert contacts.max_penetration < 0.01
    forces = np.array([contacts.forces["low"], contacts.forces["high"]])
    assert np.abs(forces.sum(axis=0)).max() < 1e-9 * np.abs(forces).max()
    reactions = result.evaluate().reactions
    above = np.sum([reactions[name].force for name in ("pin3", "pin4", "pin5")], axis=0)
    np.testing.assert_allclose(above, -forces[1], atol=1e-3 * np.abs(forces).max())
    squeezed = 0.1 - 0.005 - contacts.max_penetration
    assert forces[1, 1] == pytest.approx(1e5 * squeezed / 2, rel=0.2), (
        "of two blocks of height 1, at vertices"
    )


def in_series(strain, gap=0.0, contact="weak", **options):
    """Two blocks in touch, or a gap apart, whose ends approach each other by 2 ε and the gap."""
    scene = supple.Scene(gravity=(0, 0, 0), contact=supple.Contact(contact), **options)
    elastic = supple.StVK(young=1e5, poisson=0.0)
    low = scene.add_solid(supple.block(4), elastic, density=100)
    high = scene.add_solid(supple.block(5, origin=(0, 1 + gap, 0)), elastic, density=100)
    scene.pin(low.where(lambda X: X[:, 1] <= 0), name="base")
    top = high.where(lambda X: X[:, 1] >= 2 + gap - 1e-9)
    scene.pin(top, motion=supple.Translate((0, -2 * strain - gap, 0)))
    return scene


@pytest.mark.parametrize("strain", [0.0, 0.001, 0.01])
def test_bodies_that_touch_at_rest_carry_the_force_of_their_strain(strain):
    """They carried 123 N without any strain, and 222 N instead of 100 N at 0.1 %: the thickness was a gap."""
    result = supple.equilibrium(in_series(strain))
    contact, force = result.report.contact.bodies, result.evaluate().reactions["base"].force[1]
    assert result.report.ok
    assert force == pytest.approx(1e5 * strain, rel=0.03, abs=1e-6)
    assert not contact.is_intersecting
    if strain == 0.001:
        assert contact.gap_share == 0
        assert contact.approach_share == pytest.approx(1 - force / (1e5 * strain), rel=0.2)
        smaller = (
            f"the contact force is {100 * contact.approach_share:.2g} % smaller because surfaces approach"
        )
        assert smaller in str(result.report)


@pytest.mark.parametrize("contact", ["weak", "barrier"])
def test_the_report_has_the_share_of_gaps_that_the_thickness_keeps_open(contact):
    strain = 0.001
    result = supple.equilibrium(in_series(strain, gap=0.003, contact=contact))
    bodies, force = result.report.contact.bodies, result.evaluate().reactions["base"].force[1]
    assert force > 2 * 1e5 * strain
    assert bodies.gap_share == pytest.approx(1 - 1e5 * strain / force, rel=0.05)
    assert f"{100 * bodies.gap_share:.2g} % of the contact force comes from gaps" in str(result.report)


def test_shares_of_the_contact_force_are_those_of_prescribed_displacements():
    """Loads and motions determine the force themselves; of 1 N, "12 was due to open gaps"."""
    scene = in_series(0.0)
    scene.pins.pop()
    high = scene.bodies[1]
    scene.pin(high.where(lambda X: X[:, 1] >= 2), axes="xz")
    scene.gravity = (0, -9.81, 0)
    loaded = supple.equilibrium(scene).report.contact.bodies
    moving = in_series(0.01, gap=0.003, quasistatic=False)
    *_, frame = supple.simulate(moving, solver="pbng", dt=0.1, frames=12)
    for report in (loaded, frame.report.contact.bodies):
        assert max(abs(force[1]) for force in report.forces.values()) > 10
        assert report.mean_approach > 1e-5
        assert report.gap_share is report.approach_share is None
        assert "% of the contact force" not in str(report)


def test_bodies_pass_through_each_other_without_contact():
    scene = pressed()
    scene.contact = "none"
    result = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-5, position_tolerance=None)
    assert result.report.contact is None
    assert result.positions[64:, 1].min() < result.positions[:64, 1].max() - 0.09


def test_stack_of_two_blocks_rests_on_the_floor():
    """The lower block carries the upper one, and the floor both weights."""
    scene = supple.Scene(gravity=(0, -9.81, 0), quasistatic=False, dt=0.01, damping=0.2, contact="weak")
    elastic = supple.Corotated(young=1e5, poisson=0.3)
    scene.add_solid(supple.block(cells=(2, 2, 2), size=(1, 1, 1)), elastic, density=100, name="low")
    above = supple.block(cells=(2, 2, 2), size=(0.8, 0.8, 0.8)).translated((0.1, 1.005, 0.1))
    scene.add_solid(above, elastic, density=100, name="high")
    scene.add_obstacle(supple.Plane(), friction=0.5, name="floor")
    *_, frame = supple.simulate(scene, solver=supple.PBNG(iterations=30), frames=60)
    (floor,), contacts = frame.report.contact.obstacles.each, frame.report.contact.bodies
    weight, upper = 9.81 * 100 * (1 + 0.8**3), 9.81 * 100 * 0.8**3
    assert -floor.force[1] == pytest.approx(weight, rel=0.05)
    assert contacts.forces["high"][1] == pytest.approx(upper, rel=0.1)
    assert contacts.max_penetration < 0.01
    assert frame.positions[27:, 1].min() > 0.95


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: supple.Scene(contact="hard"), "contact must be"),
        (lambda: supple.Contact(thickness=-1.0), "thickness"),
        (
            lambda: supple.Contact("weak", spacing=1.0),
            "spacing is only for the contact method \"grid\", and the method is 'weak'",
        ),
        (lambda: supple.Contact("barrier", cfl=0.2), 'cfl is only for the contact method "grid"'),
        (lambda: supple.Contact("grid", stiffness=1.0), 'stiffness is only for the contact method "weak" or'),
        (lambda: supple.Contact("none", thickness=0.1), "thickness is only for the contact method"),
        (lambda: supple.Contact("grid", cfl=1.5), "cfl of contact must be at most 1"),
        (lambda: supple.scene.build_model(pressed(thickness=0.7)), "must be smaller than the edges"),
    ],
)
def test_bad_options_are_refused(make, message):
    with pytest.raises(supple.SceneError, match=message):
        make()


def test_intersecting_blocks_are_not_converged():
    """Constraints are far too soft to separate the blocks."""
    soft = pressed(stiffness=1e4)
    contact = supple.equilibrium(
        soft, solver=supple.PBNG(), tolerance=1e-2, max_iterations=100, position_tolerance=None
    ).report.contact
    assert contact.bodies.max_penetration > 0
    assert contact.bodies.complementarity > 0
    assert check_intersections(supple.Outcome.CONVERGED, contact) is supple.Outcome.INTERSECTING
    assert check_intersections(supple.Outcome.FIXED_ITERATIONS, contact) is supple.Outcome.FIXED_ITERATIONS
    separate = replace(contact, bodies=replace(contact.bodies, max_penetration=0.0))
    assert check_intersections(supple.Outcome.CONVERGED, separate) is supple.Outcome.CONVERGED
    assert not supple.Outcome.INTERSECTING.ok


@pytest.mark.parametrize("depth", [-0.1, 0.02, 0.3])
def test_solids_beyond_the_search_depth_have_passed_each_other(depth):
    """Without contacts between them, nothing was deep: such a state counted as converged."""
    scene = in_series(0.0)
    problem = Problem(supple.scene.build_model(scene), "float64")
    x = problem.model.rest.copy()
    x[scene.bodies[1].vertices] -= (0.04, depth, 0.07)
    problem.positions = x
    report = report_penalty_contact(problem)
    assert report.is_intersecting == (depth > 0)
    assert report.max_penetration == pytest.approx(max(depth, 0), abs=0.003)


@pytest.mark.parametrize("height", [0.5, 1.2], ids=["through", "above"])
def test_cloth_passed_by_bodies_is_not_converged(height):
    """Cloth has no interior, so penetration depth cannot detect the intersection."""
    scene = supple.Scene(gravity=(0, 0, 0), contact="weak")
    block = scene.add_solid(supple.block(1), supple.Corotated(young=1e5, poisson=0.3))
    scene.pin(block.where(lambda X: X[:, 1] <= 0))
    sheet = supple.sheet(2, size=(2, 2), plane="xz", origin=(-0.43, height, -0.47))
    cloth = scene.add_cloth(
        sheet, supple.materials.PlaneStressStVK(young=1e5, poisson=0.3), density=0.1, thickness=1e-3
    )
    scene.pin(cloth.where(np.arange(len(sheet.points))))
    report = supple.equilibrium(
        scene, solver=supple.PBNG(), tolerance=1e-3, max_iterations=50, position_tolerance=None
    ).report
    contact = report.contact
    assert (contact.bodies.edge_intersections > 0) == contact.bodies.is_intersecting == (height < 1)
    assert contact.is_intersecting == (height < 1)
    assert ("through cloth" in str(contact)) == (height < 1)
    assert (report.outcome is supple.Outcome.CONVERGED) == (height > 1)
