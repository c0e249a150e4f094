"""Bodies with known forces and stresses."""

import numpy as np
import pytest
from closed_forms import PRINCIPAL_STRESS
from problems import (
    HAND_WRITTEN,
    material,
)

import supple

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


def balanced(scene, **options):
    result = supple.equilibrium(scene, solver="newton", tolerance=1e-11, **options)
    return result, result.evaluate()
