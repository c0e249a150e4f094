"""Moves of groups of tied vertices: the part of a PBNG sweep after the updates of single vertices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, solve_spd
from supple.algebra.projector import free_bound, free_part
from supple.kernels import do, gather, generic, is_leader, load, scatter, shared_lane_min, split_lanes, where
from supple.ordering import TiedGroups, color_bounds, each_color
from supple.problem import Problem, padded
from supple.problem.constrained_dofs import group_normals, held_at
from supple.problem.force_kernels import sum_forces
from supple.terms import add_group_forces, limit_group_step


class NoLinks(NamedTuple):
    """Model without weak constraints between moving points; it has no colors."""

    color_start: Any


class LinkRows(NamedTuple):
    """Groups of tied vertices, packed for kernels.

    Attributes:
        color_start, members, weight, width, terms, own, share: As in `TiedGroups`.
        force: (batches, 3, lanes) weighted sum of the external forces on the members [N].
        inertia: (batches, k, lanes) inertia of each member [N/m].
        held: (batches, 6, lanes) projection N onto the directions along which any member is constrained, or
            ().
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
    held: Any = ()


def no_links() -> NoLinks:
    return NoLinks(np.zeros(1, np.int64))


def rows_of_links(problem: Problem) -> LinkRows | NoLinks:
    """Return packed groups of tied vertices, cached while loads and inertia are unchanged."""
    links = problem.shared("links", problem.layout.links)
    if links is None:
        return problem.shared("no links", no_links)
    known = problem.shared("rows of links", list)
    if not known or known[0] is not problem.loads.force or known[1] is not problem.loads.inertia:
        known[:] = problem.loads.force, problem.loads.inertia, _link_rows(problem, links)
    return known[2]


def _link_rows(problem: Problem, links: TiedGroups) -> LinkRows:
    members, dtype = links.members, problem.dtype
    force = padded(problem.loads.force)[..., members, :] * links.weight[..., None]
    force = np.swapaxes(force.sum(axis=-3), -1, -2)
    return LinkRows(
        links.color_start,
        members,
        links.width,
        links.weight,
        np.ascontiguousarray(force, dtype),
        np.append(problem.loads.inertia, 0)[members].astype(dtype),
        links.terms,
        links.own,
        links.share,
        group_normals(problem.model, members, dtype),
    )


class GroupVisit(NamedTuple):
    """Move the members of each group in a batch by w ω A⁻¹ f.

    f and A are weighted sums over the members, with weights w, of forces and of upper bounds of the Hessian
    blocks. The terms bound the step.
    """

    links: Any
    u: Any
    anchor: Any
    omega: Any


@do.of(GroupVisit)
def _visit_group(visit, place):
    links, u, anchor, omega = visit.links, visit.u, visit.anchor, visit.omega
    batch = split_lanes(place, links.width)
    zero = 0.0 * load(links.force, batch, 0)
    nothing = (zero, zero, zero)
    f, A = add_group_forces(
        links.terms, links.own, links.share, batch, u, nothing, (zero, zero, zero, zero, zero, zero)
    )
    f, A = sum_forces(batch, f, A)
    f = (
        f[0] + load(links.force, batch, 0),
        f[1] + load(links.force, batch, 1),
        f[2] + load(links.force, batch, 2),
    )
    A = (A[0] + 1e-30, A[1] + 1e-30, A[2] + 1e-30, A[3], A[4], A[5])
    for m in range(links.members.shape[1]):
        w = load(links.weight, batch, m)
        k = w * load(links.inertia, batch, m)
        x, target = gather(u, links.members, batch, m), gather(anchor, links.members, batch, m)
        f = (f[0] + k * (target[0] - x[0]), f[1] + k * (target[1] - x[1]), f[2] + k * (target[2] - x[2]))
        A = (A[0] + w * k, A[1] + w * k, A[2] + w * k, A[3], A[4], A[5])
    N = held_at(links.held, batch)
    step = scale(omega, solve_spd(free_bound(N, A), free_part(N, f)))
    limit = limit_group_step(links.terms, links.own, links.share, batch, u, step, zero + 1.0)
    step = scale(shared_lane_min(batch, limit), step)
    finite = dot(step, step) < 1e30
    step = (where(finite, step[0], zero), where(finite, step[1], zero), where(finite, step[2], zero))
    if is_leader(batch):
        for m in range(links.members.shape[1]):
            x = gather(u, links.members, batch, m)
            scatter(u, links.members, batch, m, add(x, scale(load(links.weight, batch, m), step)))


@generic
def sweep_links(links, team, phase, u, anchor, omega):
    """Move every group once, color by color, from `phase` on; return the next phase."""


@sweep_links.of(NoLinks)
def _nothing(links, team, phase, u, anchor, omega):
    return phase


@sweep_links.of(LinkRows)
def _sweep_links(links, team, phase, u, anchor, omega):
    colors = links.color_start
    visit = GroupVisit(links, u, anchor, omega)
    return each_color(team, phase, colors, color_bounds(colors, 0), visit)
