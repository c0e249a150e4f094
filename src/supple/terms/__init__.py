"""Energy terms: one file per kind of stencil."""

from supple.terms.compose import add_forces, add_group_forces, limit_group_step, limit_step
from supple.terms.parameters import refreshed, same_kind, several
from supple.terms.spring import PointSprings, Springs
from supple.terms.term import (
    Elements,
    Relations,
    Term,
    Visits,
    energy,
    inversion,
    step_fraction,
    vertex_force,
)
from supple.terms.tet import TetElasticity
from supple.terms.triangle import TriangleElasticity
from supple.terms.weak import WeakConstraints

__all__ = [
    "Elements",
    "PointSprings",
    "Relations",
    "Springs",
    "Term",
    "TetElasticity",
    "TriangleElasticity",
    "Visits",
    "WeakConstraints",
    "add_forces",
    "add_group_forces",
    "energy",
    "inversion",
    "limit_group_step",
    "limit_step",
    "refreshed",
    "same_kind",
    "several",
    "step_fraction",
    "vertex_force",
]
