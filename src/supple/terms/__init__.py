"""Energy terms, one module per kind of stencil."""

from supple.terms.base.compose import add_forces, add_group_forces, limit_group_step, limit_step
from supple.terms.base.packed_parameters import have_same_kernels, pack_materials, refresh_material
from supple.terms.base.term import (
    Elements,
    Incidence,
    NodeInterpolation,
    Relations,
    Term,
    energy,
    inversion,
    step_fraction,
    vertex_force,
    write_incidence,
)
from supple.terms.cable import Cable, CableSegments
from supple.terms.contact.barrier_energy import Barriers
from supple.terms.contact.penalty import PenaltyContacts
from supple.terms.grid_embedded import Deform, EmbeddedElasticity, deform_all, update_deformations
from supple.terms.hylc import Fabric, FabricElasticity, FabricMembrane, load_fabric
from supple.terms.nodal_forces import NodalForces
from supple.terms.pressure import Pressure
from supple.terms.sealed_gas import SealedGas, volume_within
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
from supple.terms.shells.isometric_bending import IsometricHinges
from supple.terms.shells.pattern import PatternElasticity
from supple.terms.shells.triangle import TriangleElasticity
from supple.terms.spring import PointSprings, Springs
from supple.terms.tet import TetElasticity
from supple.terms.weak_constraint import WeakConstraints

__all__ = [
    "BENDINGS",
    "Barriers",
    "Bending",
    "Cable",
    "CableSegments",
    "CreasedBending",
    "Deform",
    "Elements",
    "EmbeddedElasticity",
    "Fabric",
    "FabricElasticity",
    "FabricMembrane",
    "HingeBending",
    "Hinges",
    "Incidence",
    "IsometricBending",
    "IsometricHinges",
    "NodalForces",
    "NodeInterpolation",
    "PatternElasticity",
    "PenaltyContacts",
    "PointSprings",
    "Pressure",
    "Relations",
    "SealedGas",
    "Springs",
    "Term",
    "TetElasticity",
    "TriangleElasticity",
    "WeakConstraints",
    "add_forces",
    "add_group_forces",
    "bending_terms",
    "deform_all",
    "energy",
    "have_same_kernels",
    "hinges_of",
    "inversion",
    "limit_group_step",
    "limit_step",
    "load_fabric",
    "pack_materials",
    "plate_stiffness",
    "refresh_material",
    "step_fraction",
    "update_deformations",
    "vertex_force",
    "volume_within",
    "write_incidence",
]
