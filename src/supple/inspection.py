"""What a scene amounts to, before anything is solved: sizes, orderings, worst elements, memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.ordering import colour_elements, colour_vertices
from supple.ordering.elements import colour_groups, element_groups
from supple.scene import Scene, build_model
from supple.solvers import SOLVERS
from supple.terms import WeakConstraints

# Bytes per number stored for each visit (PBNG) or element (element-wise methods), besides ids.
_PBNG_NUMBERS, _ELEMENT_NUMBERS = 10, 10 + 4 + 24


def inspect(scene: Scene, cluster_size: int = 5, worst: int = 5) -> dict[str, Any]:
    """Vertices, tets, components, colours of vertices, elements and clusters, the worst elements, and the
    memory that solvers need [MB, float32 and float64]."""
    model = build_model(scene)
    n, tets = model.vertices, model.tets
    groups = element_groups(tets, n, cluster_size)
    stencils = [term.vertices for term in model.terms]
    return {
        "vertices": n,
        "tets": len(tets),
        "pinned": len(model.pinned),
        "weak_constraints": sum(len(t.vertices) for t in model.terms if isinstance(t, WeakConstraints)),
        "bodies": [_body(body, worst) for body in scene.bodies],
        "orderings": {
            "vertex_colours": int(colour_vertices(stencils, np.flatnonzero(model.free), n).max()) + 1,
            "element_colours": int(colour_elements(tets, n).max()) + 1,
            "clusters": len(groups),
            "cluster_size": cluster_size,
            "cluster_colours": int(colour_groups(groups, tets, n).max()) + 1,
        },
        "memory_megabytes": {
            name: {
                precision: _megabytes(len(tets), name, size)
                for precision, size in (("float32", 4), ("float64", 8))
            }
            for name in SOLVERS
            if name != "newton"
        },
    }


def _body(body: Any, worst: int) -> dict[str, Any]:
    mesh = body.mesh
    ids = mesh.worst(worst)
    return {
        "name": body.name,
        "vertices": mesh.n_vertices,
        "tets": mesh.n_tets,
        "components": mesh.n_components,
        "volume": float(mesh.volume),
        "material": repr(body.material),
        "worst_elements": [
            {"tet": int(e), "quality": float(mesh.quality[e]), "volume": float(mesh.volumes[e])} for e in ids
        ],
    }


def _megabytes(tets: int, solver: str, size: int) -> float:
    per_visit = _PBNG_NUMBERS * size + 12
    total = (
        4 * tets * per_visit + tets * per_visit
    )  # by vertices for sweeps and residuals, by elements for energy
    if solver != "pbng":
        total += tets * (_ELEMENT_NUMBERS * size + 16)
    return round(total / 1e6, 1)
