"""Energy terms, one module per kind of stencil."""

from supple.terms.base.compose import add_forces, add_group_forces, limit_group_step, limit_step
from supple.terms.base.parameters import refreshed, same_kind, several
from supple.terms.base.term import (
    Carriage,
    Elements,
    Relations,
    Term,
    Visits,
    energy,
    inversion,
    put_visit,
    step_fraction,
    vertex_force,
)
from supple.terms.cable import Cable, CableSegments
from supple.terms.contact.barrier import Barriers
from supple.terms.contact.friction import RubbingContacts
from supple.terms.embedded import Deform, EmbeddedElasticity, deform_all, keep_up
from supple.terms.gas import SealedGas, volume_within
from supple.terms.hylc import Fabric, FabricElasticity, FabricMembrane, load_fabric
from supple.terms.pressure import Pressure
from supple.terms.pull import Pull
from supple.terms.shells.bending import (
    BENDINGS,
    Bending,
    CreasedBending,
    HingeBending,
    IsometricBending,
    bending_terms,
    hinges_of,
    plate_stiffness,
)
from supple.terms.shells.hinge import Hinges
from supple.terms.shells.isometric import IsometricHinges
from supple.terms.shells.pattern import PatternElasticity
from supple.terms.shells.triangle import TriangleElasticity
from supple.terms.spring import PointSprings, Springs
from supple.terms.tet import TetElasticity
from supple.terms.weak import WeakConstraints

__all__ = [
    "BENDINGS",
    "Barriers",
    "Bending",
    "Cable",
    "CableSegments",
    "Carriage",
    "CreasedBending",
    "Deform",
    "Elements",
    "EmbeddedElasticity",
    "Fabric",
    "FabricElasticity",
    "FabricMembrane",
    "HingeBending",
    "Hinges",
    "IsometricBending",
    "IsometricHinges",
    "PatternElasticity",
    "PointSprings",
    "Pressure",
    "Pull",
    "Relations",
    "RubbingContacts",
    "SealedGas",
    "Springs",
    "Term",
    "TetElasticity",
    "TriangleElasticity",
    "Visits",
    "WeakConstraints",
    "add_forces",
    "add_group_forces",
    "bending_terms",
    "deform_all",
    "energy",
    "hinges_of",
    "inversion",
    "keep_up",
    "limit_group_step",
    "limit_step",
    "load_fabric",
    "plate_stiffness",
    "put_visit",
    "refreshed",
    "same_kind",
    "several",
    "step_fraction",
    "vertex_force",
    "volume_within",
]
