"""Layers of cloth, each with about a quarter of the vertices of the one before, bound to each other.

The vertices of all layers are one model: first those of the model itself, then those of the first coarser
surface, and so on, each of which stands for one vertex of the model. A layer has the membranes of the cloth,
but nothing else, and the masses and forces of the layer before, spread over its corners. Every vertex of a
layer is bound to its place on the next by a weak constraint [PBNG section 8.2, eq. 19].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from supple.meshes.coarsening import Coarser, coarser
from supple.model import Model
from supple.ordering import batch_elements
from supple.terms import Term, WeakConstraints

FEWEST = 40
"""Vertices that a layer has at least."""

VERTICES_OF_ONE = 4
"""How many vertices are bound to one of the next layer, about."""


class Layer(NamedTuple):
    """A coarser surface: kept (k,): vertices of the layer before that its vertices stand for; terms: its
    membranes, whose corners are numbered among all vertices; spread (k, vertices of the layer before): how
    much of what acts on one there acts on each here."""

    kept: np.ndarray
    terms: tuple[Term, ...]
    spread: csr_array


@dataclass(frozen=True, eq=False)
class Layers:
    """first (layers + 2,): the first vertex of the model, of each layer, and how many there are in all;
    stands (N,): the vertex of the model for which each stands; model: that of all vertices; binding: its weak
    constraints."""

    layers: tuple[Layer, ...]
    first: np.ndarray
    stands: np.ndarray
    model: Model
    binding: WeakConstraints

    @property
    def counts(self) -> list[int]:
        """Vertices of the model that are in cloth, and of each layer."""
        return np.diff(self.first).tolist()

    def member(self, number: int) -> np.ndarray:
        """(N,) bool: the vertices of the model (0), or of a layer, that may move."""
        own = np.zeros(self.model.vertices, bool)
        own[self.first[number] : self.first[number + 1]] = True
        return own & self.model.free

    def spread(self, values: np.ndarray) -> np.ndarray:
        """(N, ...): forces or masses (n, ...) of the model, and what the layers have of them."""
        found = [values]
        for layer in self.layers:
            found.append(layer.spread @ found[-1])
        return np.concatenate(found)


def layers_of(model: Model, most: int | None, threads: int) -> Layers | None:
    """As many layers as have enough vertices, at most so many; None where a model has no cloth for one."""
    surfaces = [(k, term.vertices[:, :3]) for k, term in enumerate(model.terms) if is_sheet(term)]
    if not surfaces:
        return None
    triangles = np.concatenate([found for _, found in surfaces])
    owner = np.concatenate([np.full(len(found), k) for k, found in surfaces])
    element = np.concatenate([np.arange(len(found)) for _, found in surfaces])
    held = ~model.free
    stands, points, first = np.arange(model.vertices), model.rest, [0, model.vertices]
    layers: list[Layer] = []
    constraints: list[tuple[np.ndarray, np.ndarray]] = []
    before = 0  # where the vertices of the layer before begin
    while most is None or len(layers) < most:
        found = coarser(points[before:], triangles - before, held[stands[before:]])
        if len(found.vertices) < FEWEST:
            break
        here = stands[before + found.vertices]
        owner, element = owner[found.origin], element[found.origin]
        stands, points = np.concatenate([stands, here]), np.concatenate([points, model.rest[here]])
        triangles = first[-1] + found.triangles
        terms = _membranes(model, owner, element, triangles, points)
        layers.append(Layer(found.vertices, terms, _spreading(found, first[-1] - before)))
        constraints.append(_constraints(found, before, first[-1]))
        before = first[-1]
        first.append(len(stands))
    if not layers:
        return None
    whole = _with_layers(model, stands, tuple(term for layer in layers for term in layer.terms))
    binding = _binding(whole, constraints, layers, threads)
    terms = model.terms + whole.terms + (binding,)
    return Layers(tuple(layers), np.array(first), stands, replace(whole, terms=terms), binding)


def is_sheet(term: Term) -> bool:
    """Whether a term is a membrane, which other triangles can be, too."""
    return term.sheet


def _membranes(
    model: Model, owner: np.ndarray, element: np.ndarray, triangles: np.ndarray, points: np.ndarray
) -> tuple[Term, ...]:
    """Those of a layer, as those of the model in whose elements its triangles lie."""
    made = []
    for k in np.unique(owner):
        sheet: Any = model.terms[k]
        made.append(sheet.remeshed(triangles[owner == k], element[owner == k], points))
    return tuple(made)


def _spreading(found: Coarser, before: int) -> csr_array:
    """(k, before): weights of the corners to which each vertex is bound."""
    rows, columns = found.corners.ravel(), np.repeat(found.bound, 3)
    return csr_array((found.weights.ravel(), (rows, columns)), shape=(len(found.vertices), before))


def _constraints(found: Coarser, before: int, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (b, 4) and weights (b, 4) that tie those of one layer to the next."""
    vertices = np.column_stack([before + found.bound, first + found.corners])
    return vertices, np.column_stack([np.ones(len(found.bound)), -found.weights])


def _with_layers(model: Model, stands: np.ndarray, terms: tuple[Term, ...]) -> Model:
    """All vertices, held as those for which they stand, with the terms of the layers only."""
    place = np.full(model.vertices, -1)
    place[model.pinned] = np.arange(len(model.pinned))
    pinned = np.flatnonzero(place[stands] >= 0)
    held = None if model.held is None else model.held[place[stands[pinned]]]
    return replace(
        model,
        rest=model.rest[stands],
        mass=model.mass[stands],
        force=model.force[stands],
        pinned=pinned,
        held=held,
        terms=terms,
        varying=(),
        velocities=None,
        followers=(),
        changing=(),
        winds=(),
        obstacles=None,
    )


def _binding(
    model: Model, constraints: list[tuple[np.ndarray, np.ndarray]], layers: list[Layer], threads: int
) -> WeakConstraints:
    """As stiff as the vertices of the coarser layer are, divided by how many of the finer are bound to one,
    and at rest where these begin."""
    stiffness = np.zeros(model.vertices)
    u = np.zeros((model.vertices + 1, 4))
    for layer in layers:
        for term in layer.terms:
            elements = batch_elements(term, np.dtype(float), model.vertices)
            blocks = term.hessian_blocks(elements, u, "bound", threads)
            own = np.einsum("eaaii->ea", blocks) / 3
            np.add.at(stiffness, term.vertices[:, : own.shape[1]], own)
    vertices = np.concatenate([found for found, _ in constraints])
    weights = np.concatenate([found for _, found in constraints])
    k = stiffness[vertices[:, 1:]].mean(axis=1) / VERTICES_OF_ONE
    target = np.einsum("ek,eki->ei", weights, model.rest[vertices])
    isotropic = k[:, None] * np.array([1.0, 1, 1, 0, 0, 0])
    return WeakConstraints(vertices.astype(np.int32), weights, target, isotropic, model.rest)
