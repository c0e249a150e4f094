"""Divisions that are done together: 1/a and 1/b are b t and a t, with t = 1/(a b).

In packs of float64 a division takes as long as thirty products, and on a card it is a function of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from supple.materials.derived.graph import Node
from supple.materials.derived.walking import depending, reachable

MOST = 3
"""Divisions at once: of numbers between 1e-12 and 1e12 their product is none that float32 does not have."""

BRANCHES = "select", "min", "max"


def shared_reciprocals(nodes: Sequence[Node], psi: Node, F: Sequence[Node]) -> list[Node]:
    """Nodes with the reciprocals of what depends on F taken together.

    Where one divisor vanishes the others' reciprocals are lost, too. That changes nothing as long as ψ has no
    branches, of which one might not be taken: its derivatives are not finite there anyhow.
    """
    if any(node.op in BRANCHES for node in reachable([psi])):
        return list(nodes)
    graph, found = psi.graph, list(nodes)
    level = 0
    while True:
        waiting = _levels(found, F).get(level, [])
        instead: dict[Node, Node] = {}
        for k in range(0, len(waiting), MOST):
            instead |= _together(waiting[k : k + MOST])
        if not waiting:
            return found
        found, level = graph.rebuilt(found, instead), level + 1


def _levels(nodes: Sequence[Node], F: Sequence[Node]) -> dict[int, list[Node]]:
    """Reciprocals by how many others have to be known before them."""
    involved = depending(nodes, F)
    depths: dict[Node, int] = {}
    found: dict[int, list[Node]] = {}
    for node in reachable(nodes):
        depth = max((depths[arg] for arg in node.args), default=0)
        if node.op == "inv" and node in involved:
            found.setdefault(depth, []).append(node)
            depth += 1
        depths[node] = depth
    return found


def _together(reciprocals: Sequence[Node]) -> dict[Node, Node]:
    """What stands for each: with all products up to one, and the reciprocal of all, from the last to the
    first."""
    divisors = [node.args[0] for node in reciprocals]
    products = [divisors[0]]
    for divisor in divisors[1:]:
        products.append(products[-1] * divisor)
    left, found = products[-1].graph.apply("inv", products[-1]), {}
    for k in range(len(divisors) - 1, 0, -1):
        found[reciprocals[k]] = left * products[k - 1]
        left = left * divisors[k]
    found[reciprocals[0]] = left
    return found
