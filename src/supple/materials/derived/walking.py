"""Ways through graphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from supple.materials.derived.graph import Node


def reachable(nodes: Iterable[Node]) -> list[Node]:
    """All nodes that some are made of, and these, each after its args."""
    found: set[Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(node.args)
    return sorted(found, key=lambda node: node.place)


def depending(nodes: Iterable[Node], on: Iterable[Node]) -> set[Node]:
    """Those of all that `nodes` are made of that depend on some inputs, and these."""
    found = set(on)
    for node in reachable(nodes):
        if any(arg in found for arg in node.args):
            found.add(node)
    return found
