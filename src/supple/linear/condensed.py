"""Condensed stiffness of soft bodies at the rigid bodies in contact with them.

A correction s (6,) of a rigid body moves its contact vertices by J s along the directions constrained by
contact, and the other vertices to their new equilibrium. With the Hessian H of all free vertices and springs
κ in the constrained directions, stiff compared with H,

    K = Jᵀ κ J - Jᵀ κ (H + κ)⁻¹ κ J    and    Φ = (H + κ)⁻¹ κ J

are the stiffness (6, 6) felt by the rigid body and the displacements per unit correction: static
condensation. The stiffness of the contact vertices alone is larger by orders of magnitude if friction holds a
soft body, since its other vertices follow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import bsr_matrix, csc_matrix
from scipy.sparse.linalg import splu

from supple.collision.obstacles.rigid_body import Coupling, Response
from supple.linear.assembly.hessian import Assembly
from supple.linear.block_jacobi_cg import conjugate_gradients
from supple.problem import Problem

SPRING_FACTOR = 10.0
"""Stiffness of the contact springs relative to the stiffness of their vertices."""

MAX_FACTORIZED = 6_000
"""Largest number of unknowns for a direct factorization; larger systems use conjugate gradients."""

ACCURACY, ITERATIONS = 1e-3, 2_000
"""Relative accuracy and iteration limit of conjugate gradients. An inexact solution never underestimates K.
"""


def condense_stiffness(problem: Problem, holds: Sequence[Coupling]) -> list[Response] | None:
    """Compute condensed stiffness and response of soft bodies for corrections of rigid bodies.

    Args:
        problem: Problem on the CPU with batch size 1.
        holds: Contact vertices of each rigid body.

    Returns:
        One response for each rigid body, or None if the Hessian is singular or not finite.
    """
    name = f"condensation of stencils {problem.layout.version}"
    assembly: Assembly = problem.get_shared(name, lambda: Assembly(problem))
    matrix_row = np.full(problem.model.vertices, -1)
    matrix_row[assembly.free] = np.arange(len(assembly.free))
    springs, columns = np.zeros((len(assembly.free), 3, 3)), []
    for hold in holds:
        own, blocks = (
            matrix_row[hold.vertices],
            SPRING_FACTOR * hold.stiffness[:, None, None] * hold.projections,
        )
        loads = np.zeros((len(assembly.free), 3, 6))
        np.add.at(springs, own[own >= 0], blocks[own >= 0])
        np.add.at(loads, own[own >= 0], (blocks @ hold.directions)[own >= 0])
        columns.append(assembly.unconstrained(loads.reshape(-1, 6)))
    solutions = _solve_constrained(problem, assembly, springs, np.concatenate(columns, axis=1))
    if solutions is None:
        return None
    responses = []
    for k, hold in enumerate(holds):
        x = solutions[:, 6 * k : 6 * k + 6]
        free = matrix_row[hold.vertices] >= 0
        blocks = SPRING_FACTOR * hold.stiffness[:, None, None] * hold.projections
        blocks = np.where(free[:, None, None], blocks, 0.0)
        stiffness = np.einsum("kai,kab,kbj->ij", hold.directions, blocks, hold.directions) - columns[k].T @ x
        moves = np.zeros((problem.model.vertices, 3, 6))
        moves[assembly.free] = x.reshape(-1, 3, 6)
        responses.append(Response(0.5 * (stiffness + stiffness.T), moves))
    return responses


def _solve_constrained(
    problem: Problem, assembly: Assembly, springs: np.ndarray, loads: np.ndarray
) -> np.ndarray | None:
    """(3 f, c) solutions of (H + springs) x = loads."""
    H = assembly.hessian("projected")
    count = len(springs)
    diagonal = bsr_matrix((springs, np.arange(count), np.arange(count + 1)), shape=H.shape)
    A = (H + diagonal).tobsr((3, 3))
    if not np.isfinite(A.data).all() or not loads.any():
        return None if loads.any() else np.zeros_like(loads)
    try:
        if assembly.size <= MAX_FACTORIZED:
            options = {"SymmetricMode": True}
            factors = splu(csc_matrix(A), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
            x = factors.solve(loads)
        else:
            threads = problem.device.threads
            x = np.zeros_like(loads)
            for k in np.flatnonzero(loads.any(axis=0)):
                b = np.ascontiguousarray(loads[:, k])
                x[:, k] = conjugate_gradients(A, b, ACCURACY, ITERATIONS, threads)[0]
    except (RuntimeError, np.linalg.LinAlgError):  # singular
        return None
    return x if np.isfinite(x).all() else None
