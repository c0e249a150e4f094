"""Bodies that have passed through each other, and the direction of their separation."""

import numpy as np
import pytest

import supple
from supple.collision.narrow_phase.contact_pairs import Surfaces
from supple.contact.weak_contact import REACH, THICKNESS


def surfaces_of(*bodies):
    """Of bodies that are lists of meshes."""
    triangles, body, points, count = [], [], [], 0
    for k, meshes in enumerate(bodies):
        for mesh in meshes:
            triangles.append(mesh.surface + count)
            points.append(mesh.points)
            body += [k] * len(mesh.points)
            count += len(mesh.points)
    x, flat = np.concatenate(points), np.zeros(len(bodies), bool)
    made = Surfaces(np.concatenate(triangles), np.array(body), x, 0.0, flat)
    made.clear = REACH * made.edge
    return made


def meetings(surfaces, x):
    return surfaces.contact_pairs(x, THICKNESS * surfaces.edge, REACH * surfaces.edge)


def cube(at=(0, 0, 0), size=(1, 1, 1), cells=2):
    return supple.block(cells=cells, size=size).translated(at)


@pytest.mark.parametrize("squeeze", [0.5, 0.3, 0.15])
@pytest.mark.parametrize("mesh", [cube(), supple.meshes.torus(0.12, 0.05, 1)], ids=["block", "ring"])
def test_squeezed_body_does_not_intersect_itself(mesh, squeeze):
    """Its two sides approach closer than the contact distance, with the body between them."""
    surfaces = surfaces_of([mesh])
    thinnest = np.ptp(surfaces.rest, axis=0).argmin()
    x = surfaces.rest.copy()
    x[:, thinnest] *= squeeze
    assert len(meetings(surfaces, x).distance) == 0


def test_intersecting_parts_of_a_body_are_detected():
    """The slit between two blocks of one body is more than closed."""
    surfaces = surfaces_of([cube(), cube((0, 1.4, 0))])
    x = surfaces.rest.copy()
    x[x[:, 1] > 1.2, 1] -= 0.42
    pairs = meetings(surfaces, x)
    assert pairs.distance.min() == pytest.approx(-0.02)
    assert pairs.strength.sum() > 1


@pytest.mark.parametrize("wide", [0.05, 0.1, 0.15])
def test_corners_of_blocks_leave_by_the_shortest_way(wide):
    """The blocks overlap by 0.02 along y, and by more along z."""
    surfaces = surfaces_of([cube()], [cube((0.1, 0.98, 1 - wide), cells=3)])
    pairs = meetings(surfaces, surfaces.rest)
    assert pairs.distance.min() == pytest.approx(-0.02)
    through = pairs.distance < -0.01
    assert through.any()
    np.testing.assert_allclose(np.abs(pairs.normal[through, 1]), 1.0)


def test_separation_from_a_plate_is_on_the_near_side():
    """A block deeper than half the thickness of the plate is pushed back by its full area."""
    plate, deep = cube((-1, -0.1, -1), (3, 0.1, 3), cells=(6, 1, 6)), 0.07
    surfaces = surfaces_of([plate], [cube((0.1, -deep, 0.1), (0.8, 0.8, 0.8))])
    above = surfaces_of([plate], [cube((0.1, -0.001, 0.1), (0.8, 0.8, 0.8))])
    pairs, touching = (meetings(each, each.rest) for each in (surfaces, above))
    faces, flat = pairs.distance < -0.06, np.abs(touching.normal[:, 1]) > 0.9
    assert np.abs(pairs.normal[faces, 1]).min() > 0.9
    areas = []
    for each, contacts, which in ((surfaces, pairs, faces), (above, touching, flat)):
        of_triangles = ((contacts.keys >= 0) & (contacts.keys < len(each.triangles))).all(axis=1)
        areas.append(contacts.strength[which & of_triangles].sum())
    assert areas[0] == pytest.approx(areas[1])
