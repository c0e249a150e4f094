"""Traversals of expression graphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from supple.materials.derived.graph import Node


def reachable(nodes: Iterable[Node]) -> list[Node]:
    """Return nodes and everything they depend on, in topological order."""
    found: set[Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(node.args)
    return sorted(found, key=lambda node: node.place)


def depending(nodes: Iterable[Node], on: Iterable[Node]) -> set[Node]:
    """Return the given inputs, and the nodes reachable from `nodes` that depend on them."""
    found = set(on)
    for node in reachable(nodes):
        if any(arg in found for arg in node.args):
            found.add(node)
    return found
