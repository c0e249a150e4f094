"""Reactions at pins and attachments, which balance the loads."""

import numpy as np
import pytest
from evaluated_bodies import balanced, body_of
from problems import (
    cantilever,
    face,
    material,
)

import supple


@pytest.mark.parametrize("name", ["corotated", "log_neo_hookean"])
def test_reactions_balance_the_loads(name):
    """Forces and moments of loads and reactions vanish together, about any point."""
    scene = cantilever(material(name), cells=2)
    (block,) = scene.bodies
    scene.add_force(block.where(face(0, 1)), (3.0, -2.0, 1.0))
    result, evaluation = balanced(scene)
    free, size = result.model.free, np.abs(evaluation.reaction_force).max()
    assert np.abs(evaluation.net_force[free]).max() < 1e-6 * size
    np.testing.assert_array_equal(evaluation.reaction_force[free], 0)
    (reaction,) = evaluation.reactions.values()
    x, loads = evaluation.positions, evaluation.external_force
    np.testing.assert_allclose(reaction.force, -loads.sum(axis=0), atol=1e-6 * size)
    about = np.cross(x - reaction.center, loads).sum(axis=0)
    np.testing.assert_allclose(reaction.moment, -about, atol=1e-6 * size)
    np.testing.assert_array_equal(reaction.forces, evaluation.reaction_force[reaction.vertices])


def test_attachments_balance_loads_too():
    """Springs to fixed points carry the rest of the load."""
    scene = body_of("neo_hookean", supple.block(2), gravity=(0, -10, 0))
    (block,) = scene.bodies
    scene.pin(block.where(face(0, 0)))
    scene.attach(block.where(face(0, 1)), stiffness=50.0)
    _, evaluation = balanced(scene)
    pulls = evaluation.terms[1]
    total = (
        evaluation.reactions["pin0"].force + pulls.force.sum(axis=0) + evaluation.external_force.sum(axis=0)
    )
    assert pulls.force[:, 1].min() > 0.1
    np.testing.assert_allclose(total, 0, atol=1e-7)


def test_vertex_of_two_pins_counts_once():
    scene = cantilever(material("corotated"), cells=2)
    (block,) = scene.bodies
    scene.pin(block.where(face(1, 0)) & block.where(face(0, 0)), name="edge")
    scene.pin(block.where([26]), name="corner")
    _, evaluation = balanced(scene)
    assert list(evaluation.reactions) == ["pin0", "edge", "corner"]
    np.testing.assert_array_equal(evaluation.reactions["edge"].force, 0)
    total = sum(reaction.force for reaction in evaluation.reactions.values())
    np.testing.assert_allclose(total, -evaluation.external_force.sum(axis=0), atol=1e-7)


def test_names_of_pins_are_unique():
    scene = cantilever(material("corotated"), cells=1)
    (block,) = scene.bodies
    with pytest.raises(ValueError, match="already a pin named 'pin0'"):
        scene.pin(block, name="pin0")
    with pytest.raises(ValueError, match="The name of a pin must be text"):
        scene.pin(block, name="a/b")


def test_reactions_of_rollers_are_normal():
    """A block on a sloped floor: the floor's roller pushes along its normal, a stop along the slope, and
    together they carry the weight."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(supple.block(2), supple.NeoHookean(young=1e5, poisson=0.3), density=100)
    normal = np.array([0.6, 0.8, 0.0])
    slope = np.array([0.8, -0.6, 0.0])
    scene.pin(body.where(lambda X: X[:, 1] <= 0), normal=normal, name="floor")
    scene.pin(body.where(lambda X: X[:, 0] <= 0), normal=slope, name="stop")
    scene.pin(body.where(lambda X: X[:, 2] <= 0), axes="z", name="side")
    evaluation = supple.equilibrium(scene, tolerance=1e-9).evaluate()
    reactions = {name: reaction.force for name, reaction in evaluation.reactions.items()}
    for name, direction in (("floor", normal), ("stop", slope), ("side", (0, 0, 1))):
        np.testing.assert_allclose(np.cross(reactions[name], direction), 0, atol=1e-6)
    np.testing.assert_allclose(sum(reactions.values()), [0, 980, 0], atol=1e-4)


def test_reactions_at_vertices_of_several_rollers_add_up():
    """A wedge between two oblique planes that share an edge; a clamp takes the reactions of its vertices,
    also of those on a plane."""
    scene = supple.Scene(gravity=(3, -9.8, 1))
    body = scene.add_solid(supple.block(2), supple.NeoHookean(young=1e5, poisson=0.3), density=100)
    steep = np.array([0.6, 0.8, 0.0])
    scene.pin(body.where(lambda X: X[:, 1] <= 0), axes="y", name="floor")
    scene.pin(body.where(lambda X: (X[:, 0] <= 0) | (X[:, 1] <= 0)), normal=steep, name="wall")
    scene.pin(body.where(lambda X: (X[:, 0] >= 1) & (X[:, 1] <= 0)), name="clamp")
    evaluation = supple.equilibrium(scene, tolerance=1e-10).evaluate()
    forces = {name: reaction.forces for name, reaction in evaluation.reactions.items()}
    total = sum(force.sum(axis=0) for force in forces.values())
    np.testing.assert_allclose(total, -100 * np.array([3, -9.8, 1]), atol=1e-4)
    np.testing.assert_allclose(np.cross(forces["floor"], (0, 1, 0)), 0, atol=1e-9)
    np.testing.assert_allclose(np.cross(forces["wall"], steep), 0, atol=1e-9)
    clamped = np.isin(evaluation.reactions["floor"].vertices, evaluation.reactions["clamp"].vertices)
    assert clamped.any()
    assert not forces["floor"][clamped].any()
