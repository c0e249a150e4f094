"""Coarse layers of cloth, each with about a quarter of the vertices of the next finer one.

A single model contains the vertices of all layers: first the original vertices, then the first coarse
surface, and so on. Each coarse vertex stands for one original vertex. A layer has the membranes of the cloth
and no other terms; its masses and forces are those of the finer layer, distributed to its corners. Weak
constraints tie every vertex of a layer to a point of the next coarser layer [PBNG section 8.2, eq. 19].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from supple.meshes.coarsening import CoarseSurface, coarsen_surface
from supple.model.model import Model
from supple.ordering import batch_elements
from supple.terms import Term, WeakConstraints

MIN_VERTICES = 40
"""Smallest number of vertices of a layer."""

COARSENING_RATIO = 4
"""Approximate number of vertices tied to one vertex of the next coarser layer."""


class Layer(NamedTuple):
    """Coarse surface.

    Attributes:
        fine_vertex: (k,) vertex of the finer layer for which each vertex stands.
        terms: Membranes of the layer, with corners numbered among all vertices.
        restriction: (k, vertices of the finer layer) matrix that distributes forces and masses of the finer
            layer to the vertices.
    """

    fine_vertex: np.ndarray
    terms: tuple[Term, ...]
    restriction: csr_array


@dataclass(frozen=True, eq=False)
class Layers:
    """A model with its coarse layers.

    Attributes:
        layers: Coarse layers, from fine to coarse.
        first: (layers + 2,) first vertex of the original model and of each layer, and the total number.
        represents: (N,) original vertex for which each vertex stands.
        model: Model with the vertices of all layers.
        binding: Weak constraints between the layers.
    """

    layers: tuple[Layer, ...]
    first: np.ndarray
    represents: np.ndarray
    model: Model
    binding: WeakConstraints

    @property
    def counts(self) -> list[int]:
        """Vertex counts of the original model and of each layer."""
        return np.diff(self.first).tolist()

    def free_mask(self, layer_index: int) -> np.ndarray:
        """(N,) True for the free vertices of the original model (0) or of a layer."""
        own = np.zeros(self.model.vertices, bool)
        own[self.first[layer_index] : self.first[layer_index + 1]] = True
        return own & self.model.free

    def restrict(self, values: np.ndarray) -> np.ndarray:
        """Extend forces or masses (n, ...) of the original model to all layers: (N, ...)."""
        extended = [values]
        for layer in self.layers:
            extended.append(layer.restriction @ extended[-1])
        return np.concatenate(extended)


def build_layers(model: Model, most: int | None, threads: int) -> Layers | None:
    """Build coarse layers of the cloth in a model.

    Args:
        model: The model.
        most: Largest number of layers; None for as many as have `MIN_VERTICES` vertices.
        threads: Threads of the evaluation of stiffness.

    Returns:
        The layers, or None if the model has no cloth fine enough for one.
    """
    surfaces = [(k, term.vertices[:, :3]) for k, term in enumerate(model.terms) if is_sheet(term)]
    if not surfaces:
        return None
    triangles = np.concatenate([corners for _, corners in surfaces])
    owner = np.concatenate([np.full(len(corners), k) for k, corners in surfaces])
    element = np.concatenate([np.arange(len(corners)) for _, corners in surfaces])
    constrained = ~model.free
    represents, points, first = np.arange(model.vertices), model.rest, [0, model.vertices]
    layers: list[Layer] = []
    constraints: list[tuple[np.ndarray, np.ndarray]] = []
    fine_first = 0  # first vertex of the next finer layer
    while most is None or len(layers) < most:
        coarse = coarsen_surface(
            points[fine_first:], triangles - fine_first, constrained[represents[fine_first:]]
        )
        if len(coarse.vertices) < MIN_VERTICES:
            break
        represented = represents[fine_first + coarse.vertices]
        owner, element = owner[coarse.origin], element[coarse.origin]
        represents, points = (
            np.concatenate([represents, represented]),
            np.concatenate([points, model.rest[represented]]),
        )
        triangles = first[-1] + coarse.triangles
        terms = _membranes(model, owner, element, triangles, points)
        layers.append(Layer(coarse.vertices, terms, _restriction_matrix(coarse, first[-1] - fine_first)))
        constraints.append(_bind_to_coarse_layer(coarse, fine_first, first[-1]))
        fine_first = first[-1]
        first.append(len(represents))
    if not layers:
        return None
    combined = _combine_layers(model, represents, tuple(term for layer in layers for term in layer.terms))
    binding = _binding(combined, constraints, layers, threads)
    terms = model.terms + combined.terms + (binding,)
    return Layers(tuple(layers), np.array(first), represents, replace(combined, terms=terms), binding)


def is_sheet(term: Term) -> bool:
    """True for membranes, which can be transferred to other triangles."""
    return term.sheet


def _membranes(
    model: Model, owner: np.ndarray, element: np.ndarray, triangles: np.ndarray, points: np.ndarray
) -> tuple[Term, ...]:
    """Transfer the model's membranes to the triangles of a layer.

    Args:
        model: The original model.
        owner: Term of the model from which each triangle takes its properties.
        element: Element of that term.
        triangles: Triangles of the layer.
        points: Rest positions of all vertices.
    """
    made = []
    for k in np.unique(owner):
        sheet: Any = model.terms[k]
        made.append(sheet.remesh(triangles[owner == k], element[owner == k], points))
    return tuple(made)


def _restriction_matrix(coarse: CoarseSurface, fine_count: int) -> csr_array:
    """(k, fine_count) interpolation weights of the ties, transposed."""
    rows, columns = coarse.corners.ravel(), np.repeat(coarse.bound, 3)
    return csr_array((coarse.weights.ravel(), (rows, columns)), shape=(len(coarse.vertices), fine_count))


def _bind_to_coarse_layer(
    coarse: CoarseSurface, fine_first: int, coarse_first: int
) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (b, 4) and weights (b, 4) of the ties between a layer and the next coarser one."""
    vertices = np.column_stack([fine_first + coarse.bound, coarse_first + coarse.corners])
    return vertices, np.column_stack([np.ones(len(coarse.bound)), -coarse.weights])


def _combine_layers(model: Model, represents: np.ndarray, terms: tuple[Term, ...]) -> Model:
    """Return a model with all vertices, their Dirichlet conditions, and the terms of the layers only.

    A coarse vertex takes the Dirichlet condition of the vertex it stands for.
    """
    index = np.full(model.vertices, -1)
    index[model.pinned] = np.arange(len(model.pinned))
    pinned = np.flatnonzero(index[represents] >= 0)
    constrained = (
        None
        if model.constraint_projection is None
        else model.constraint_projection[index[represents[pinned]]]
    )
    return replace(
        model,
        rest=model.rest[represents],
        mass=model.mass[represents],
        force=model.force[represents],
        pinned=pinned,
        constraint_projection=constrained,
        terms=terms,
        varying=(),
        velocities=None,
        dynamic_terms=(),
        changing=(),
        winds=(),
        obstacles=None,
    )


def _binding(
    model: Model, constraints: list[tuple[np.ndarray, np.ndarray]], layers: list[Layer], threads: int
) -> WeakConstraints:
    """Return the weak constraints between layers, satisfied at the initial positions.

    Their stiffness is the mean stiffness of the coarse vertices divided by `COARSENING_RATIO`.
    """
    stiffness = np.zeros(model.vertices)
    u = np.zeros((model.vertices + 1, 4))
    for layer in layers:
        for term in layer.terms:
            elements = batch_elements(term, np.dtype(float), model.vertices)
            blocks = term.hessian_blocks(elements, u, "bound", threads)
            own = np.einsum("eaaii->ea", blocks) / 3
            np.add.at(stiffness, term.vertices[:, : own.shape[1]], own)
    vertices = np.concatenate([corners for corners, _ in constraints])
    weights = np.concatenate([weight for _, weight in constraints])
    k = stiffness[vertices[:, 1:]].mean(axis=1) / COARSENING_RATIO
    target = np.einsum("ek,eki->ei", weights, model.rest[vertices])
    isotropic = k[:, None] * np.array([1.0, 1, 1, 0, 0, 0])
    return WeakConstraints(vertices.astype(np.int32), weights, target, isotropic, model.rest)
