"""Moves of groups of tied vertices: the part of a PBNG sweep after the updates of single vertices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.algebra.dirichlet_projection import free_bound, free_part
from supple.algebra.matrix3 import add, dot, scale, solve_spd
from supple.kernels import do, gather, generic, is_leader, load, scatter, shared_lane_min, split_lanes, where
from supple.ordering import TiedGroups, color_bounds, each_color
from supple.problem import Problem, pad_vectors
from supple.problem.dirichlet_rows import constrained_at, group_normals
from supple.problem.force_kernels import sum_forces
from supple.terms import add_group_forces, limit_group_step


class NoTiedGroups(NamedTuple):
    """Model without weak constraints between moving points; it has no colors."""

    color_start: Any


class GroupData(NamedTuple):
    """Groups of tied vertices, packed for kernels.

    Attributes:
        color_start, members, weight, width, terms, own, share: As in `TiedGroups`.
        force: (batches, 3, lanes) weighted sum of the external forces on the members [N].
        inertia: (batches, k, lanes) inertia of each member [N/m].
        constrained: (batches, 6, lanes) projection N onto the directions along which any member is
            constrained, or ().
    """

    color_start: Any
    members: Any
    width: Any
    weight: Any
    force: Any
    inertia: Any
    terms: Any
    own: Any
    share: Any
    constrained: Any = ()


def no_tied_groups() -> NoTiedGroups:
    return NoTiedGroups(np.zeros(1, np.int64))


def group_data(problem: Problem) -> GroupData | NoTiedGroups:
    """Return packed groups of tied vertices, cached while loads and inertia are unchanged."""
    groups = problem.get_shared("tied groups", problem.layout.links)
    if groups is None:
        return problem.get_shared("no tied groups", no_tied_groups)
    known = problem.get_shared("data of tied groups", list)
    if not known or known[0] is not problem.loads.force or known[1] is not problem.loads.inertia:
        known[:] = problem.loads.force, problem.loads.inertia, _pack_groups(problem, groups)
    return known[2]


def _pack_groups(problem: Problem, groups: TiedGroups) -> GroupData:
    members, dtype = groups.members, problem.dtype
    force = pad_vectors(problem.loads.force)[..., members, :] * groups.weight[..., None]
    force = np.swapaxes(force.sum(axis=-3), -1, -2)
    return GroupData(
        groups.color_start,
        members,
        groups.width,
        groups.weight,
        np.ascontiguousarray(force, dtype),
        np.append(problem.loads.inertia, 0)[members].astype(dtype),
        groups.terms,
        groups.own,
        groups.share,
        group_normals(problem.model, members, dtype),
    )


class GroupUpdate(NamedTuple):
    """Move the members of each group in a batch by w ω A⁻¹ f.

    f and A are weighted sums over the members, with weights w, of forces and of upper bounds of the Hessian
    blocks. The terms bound the step.
    """

    groups: Any
    u: Any
    anchor: Any
    omega: Any


@do.of(GroupUpdate)
def _update_group(update, item):
    groups, u, anchor, omega = update.groups, update.u, update.anchor, update.omega
    batch = split_lanes(item, groups.width)
    zero = 0.0 * load(groups.force, batch, 0)
    nothing = (zero, zero, zero)
    f, A = add_group_forces(
        groups.terms, groups.own, groups.share, batch, u, nothing, (zero, zero, zero, zero, zero, zero)
    )
    f, A = sum_forces(batch, f, A)
    f = (
        f[0] + load(groups.force, batch, 0),
        f[1] + load(groups.force, batch, 1),
        f[2] + load(groups.force, batch, 2),
    )
    A = (A[0] + 1e-30, A[1] + 1e-30, A[2] + 1e-30, A[3], A[4], A[5])
    for m in range(groups.members.shape[1]):
        w = load(groups.weight, batch, m)
        k = w * load(groups.inertia, batch, m)
        x, target = gather(u, groups.members, batch, m), gather(anchor, groups.members, batch, m)
        f = (f[0] + k * (target[0] - x[0]), f[1] + k * (target[1] - x[1]), f[2] + k * (target[2] - x[2]))
        A = (A[0] + w * k, A[1] + w * k, A[2] + w * k, A[3], A[4], A[5])
    N = constrained_at(groups.constrained, batch)
    step = scale(omega, solve_spd(free_bound(N, A), free_part(N, f)))
    limit = limit_group_step(groups.terms, groups.own, groups.share, batch, u, step, zero + 1.0)
    step = scale(shared_lane_min(batch, limit), step)
    finite = dot(step, step) < 1e30
    step = (where(finite, step[0], zero), where(finite, step[1], zero), where(finite, step[2], zero))
    if is_leader(batch):
        for m in range(groups.members.shape[1]):
            x = gather(u, groups.members, batch, m)
            scatter(u, groups.members, batch, m, add(x, scale(load(groups.weight, batch, m), step)))


@generic
def sweep_groups(groups, team, phase, u, anchor, omega):
    """Move every group once, color by color, from `phase` on; return the next phase."""


@sweep_groups.of(NoTiedGroups)
def _nothing(groups, team, phase, u, anchor, omega):
    return phase


@sweep_groups.of(GroupData)
def _sweep_groups(groups, team, phase, u, anchor, omega):
    colors = groups.color_start
    update = GroupUpdate(groups, u, anchor, omega)
    return each_color(team, phase, colors, color_bounds(colors, 0), update)
