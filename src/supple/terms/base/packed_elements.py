"""Packing of element data by incidence, in a single pass for large meshes."""

from __future__ import annotations

import numpy as np

from supple.kernels import kernel
from supple.terms.base.term import Incidence, others_first


def pack_elements(
    incidence: Incidence, vertices: np.ndarray, gradients: np.ndarray, volume: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pack ids, shape gradients and volumes of elements.

    Args:
        incidence: Incidences.
        vertices: (m, k) vertices of the elements.
        gradients: (m, k, 3) shape gradients [1/m].
        volume: (m,) rest volumes [m³].

    Returns:
        Ids of the other corners (rows, k - 1, lanes), and their shape gradients with the volumes (rows, 3 (k
        - 1) + 1, lanes).
    """
    (rows, lanes), others = incidence.own.shape, others_first(vertices.shape[1])
    ids = np.empty((rows, others.shape[1], lanes), np.int32)
    ids[:] = incidence.own[:, None, :]
    rest = np.zeros((rows, 3 * others.shape[1] + 1, lanes), incidence.dtype)
    indices = (
        _plain(part, np.int64) for part in (incidence.element, incidence.slot, incidence.row, incidence.lane)
    )
    data = _plain(vertices, np.int32), _plain(gradients, np.float64), _plain(volume, np.float64)
    _pack_elements(*indices, others, *data, ids, rest)
    return ids, rest


def _plain(array: np.ndarray, dtype: type) -> np.ndarray:
    """Return the array, or a copy if its type or layout would require another kernel specialization."""
    suitable = array.dtype == dtype and array.flags.c_contiguous and array.flags.writeable
    return array if suitable else np.array(array, dtype, order="C")


@kernel
def _pack_elements(element, slot, row, lane, others, vertices, gradients, volume, ids, rest):
    for v in range(len(element)):
        e, r, at = element[v], row[v], lane[v]
        for k in range(others.shape[1]):
            corner = others[slot[v], k]
            ids[r, k, at] = vertices[e, corner]
            for c in range(3):
                rest[r, 3 * k + c, at] = gradients[e, corner, c]
        rest[r, 3 * others.shape[1], at] = volume[e]
