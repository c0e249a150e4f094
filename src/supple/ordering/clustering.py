"""Greedy K-neighbor clustering of elements [BNH Algorithm 4]."""

from __future__ import annotations

import numpy as np

from supple.kernels import allocating_kernel, kernel
from supple.ordering.coloring import incidence


@allocating_kernel
def _smallest_degree_last(neighbor_start, neighbor, degree, order):
    """Fill `order` with the vertices in order of removal by least remaining degree (bucket queue)."""
    n = len(degree)
    most = degree.max()
    head = np.full(most + 1, -1)
    after = np.full(n, -1)
    before = np.full(n, -1)
    removed = np.zeros(n, np.bool_)
    for v in range(n - 1, -1, -1):
        after[v] = head[degree[v]]
        if after[v] >= 0:
            before[after[v]] = v
        head[degree[v]] = v
    least = 0
    for k in range(n):
        least = max(0, least - 1)
        while head[least] < 0:
            least += 1
        v = head[least]
        head[least] = after[v]
        if after[v] >= 0:
            before[after[v]] = -1
        removed[v] = True
        order[k] = v
        for i in range(neighbor_start[v], neighbor_start[v + 1]):
            w = neighbor[i]
            if removed[w]:
                continue
            if before[w] >= 0:
                after[before[w]] = after[w]
            else:
                head[degree[w]] = after[w]
            if after[w] >= 0:
                before[after[w]] = before[w]
            degree[w] -= 1
            before[w] = -1
            after[w] = head[degree[w]]
            if after[w] >= 0:
                before[after[w]] = w
            head[degree[w]] = w


def smallest_degree_last(start: np.ndarray, neighbor: np.ndarray) -> np.ndarray:
    """Order graph nodes smallest degree last: least degree in the subgraph of a node and its predecessors.

    Greedy coloring in this order needs few colors.

    Args:
        start, neighbor: Adjacency in CSR format.
    """
    order = np.empty(len(start) - 1, np.int64)
    _smallest_degree_last(start, neighbor, np.diff(start).astype(np.int64), order)
    return order[::-1].copy()


@allocating_kernel
def _closeness(stencils, start, element, neighbor_start, neighbor, shared):
    """List the elements that share vertices with each element, and the number of shared vertices.

    Returns the number of entries; with empty outputs it only counts.
    """
    count = 0
    k = stencils.shape[1]
    seen = np.full(len(stencils), -1)
    times = np.zeros(len(stencils), np.int64)
    fill = len(neighbor) > 0
    buffer = np.empty(len(stencils), np.int64)
    for e in range(len(stencils)):
        neighbors = 0
        for s in range(k):
            v = stencils[e, s]
            for i in range(start[v], start[v + 1]):
                other = element[i]
                if other != e:
                    if seen[other] != e:
                        seen[other] = e
                        times[other] = 0
                        buffer[neighbors] = other
                        neighbors += 1
                    times[other] += 1
        neighbor_start[e] = count
        if fill:  # closest first: distance falls with the number of shared vertices; ties by number
            others = buffer[:neighbors]
            for j, rank in enumerate(np.argsort(np.abs(others - e) - len(stencils) * times[others])):
                neighbor[count + j] = others[rank]
                shared[count + j] = times[others[rank]]
        count += neighbors
    neighbor_start[len(stencils)] = count
    return count


@kernel
def _find_seed(neighbor_start, neighbor, shared, slots, cluster):
    """Unclaimed element with the least sum of distances d = 1 - |∩|/|∪| to its unclaimed neighbors.

    Returns -1 if all elements are claimed [BNH eq. 15, 16].
    """
    best, least = -1, np.inf
    for e in range(len(cluster)):
        if cluster[e] < 0:
            total = 0.0
            for i in range(neighbor_start[e], neighbor_start[e + 1]):
                if cluster[neighbor[i]] < 0:
                    total += 1.0 - shared[i] / (2.0 * slots - shared[i])
            if total < least:
                best, least = e, total
    return best


@allocating_kernel
def _cluster(neighbor_start, neighbor, shared, slots, size, cluster, members):
    """Claim elements for clusters of `size`, `size` - 1, ..., 1; returns the number of clusters."""
    n = len(cluster)
    clusters = 0
    queue = np.empty(n, np.int64)
    while size >= 1:
        visited = np.zeros(n, np.bool_)
        root = _find_seed(neighbor_start, neighbor, shared, slots, cluster)
        next_root = 0
        while root >= 0:  # breadth first; continues with the next component at the end of one
            queue[0], first, last = root, 0, 1
            visited[root] = True
            while first < last:
                j = queue[first]
                first += 1
                for i in range(neighbor_start[j], neighbor_start[j + 1]):
                    if not visited[neighbor[i]]:
                        visited[neighbor[i]] = True
                        queue[last] = neighbor[i]
                        last += 1
                if cluster[j] >= 0:
                    continue
                members[clusters, 0] = j
                cluster[j] = clusters
                claimed = 1
                for i in range(neighbor_start[j], neighbor_start[j + 1]):
                    if claimed == size:
                        break
                    if cluster[neighbor[i]] < 0:
                        members[clusters, claimed] = neighbor[i]
                        cluster[neighbor[i]] = clusters
                        claimed += 1
                if claimed == size:
                    clusters += 1
                else:  # too small: undo
                    for i in range(claimed):
                        cluster[members[clusters, i]] = -1
                        members[clusters, i] = -1
            while next_root < n and visited[next_root]:
                next_root += 1
            root = next_root if next_root < n else -1
        size -= 1
    return clusters


def element_graph(stencils: np.ndarray, vertices: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Neighbors of each element by shared vertices: (start, neighbor, shared).

    Neighbors are sorted closest first; `shared` is the number of common vertices.
    """
    stencils = np.ascontiguousarray(stencils, np.int64)
    touching, element, _ = incidence(stencils, vertices)
    start = np.empty(len(stencils) + 1, np.int64)
    none = np.empty(0, np.int64)
    count = _closeness(stencils, touching, element, start, none, none)
    neighbor, shared = np.empty(count, np.int64), np.empty(count, np.int64)
    _closeness(stencils, touching, element, start, neighbor, shared)
    return start, neighbor, shared


def cluster_elements(stencils: np.ndarray, vertices: int, size: int) -> np.ndarray:
    """Partition the elements into clusters of an element and its closest unclaimed neighbors [BNH Algorithm
    4].

    Equally close elements are taken in the order of their numbers.

    Args:
        stencils: (m, k) vertex ids.
        vertices: Number of vertices.
        size: Largest cluster size.

    Returns:
        (clusters, size) element ids, padded with -1.
    """
    if size < 1:
        raise ValueError(f"the cluster size must be at least 1, got {size}")
    start, neighbor, shared = element_graph(stencils, vertices)
    cluster = np.full(len(stencils), -1, np.int64)
    members = np.full((len(stencils), size), -1, np.int64)
    clusters = _cluster(start, neighbor, shared, stencils.shape[1], size, cluster, members)
    return members[:clusters]
