# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Turns an acyclic control-flow graph into nested if/else through post-dominators."""

from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

from switchgnn.softswitch.errors import UnsupportedProgramError

Node = TypeVar("Node")

# Unstructured graphs repeat shared nodes; beyond this limit the function would be too long.
_EMITTED_NODES_LIMIT = 20_000


def join_points(
    successors: Mapping[Node, Sequence[Node | None]], where: str
) -> dict[Node, Node | None]:
    """Return for every node the first node that all its paths share; None stands for the end.

    Raises:
        UnsupportedProgramError: the graph has a cycle.
    """
    graph = {node: [n for n in nexts if n is not None] for node, nexts in successors.items()}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError:
        raise UnsupportedProgramError(
            "loops in the control flow", where, "unroll the loop in the program"
        ) from None
    parent: dict[Node, Node | None] = {}
    depth: dict[Node | None, int] = {None: 0}
    for node in order:
        nexts = successors[node] or (None,)
        join: Node | None = nexts[0]
        for other in nexts[1:]:
            join = _meet(join, other, parent, depth)
        parent[node] = join
        depth[node] = depth[join] + 1
    return parent


def _meet(
    one: Node | None,
    other: Node | None,
    parent: Mapping[Node, Node | None],
    depth: Mapping[Node | None, int],
) -> Node | None:
    while one != other:
        if depth[one] >= depth[other] and one is not None:
            one = parent[one]
        elif other is not None:
            other = parent[other]
    return one


class Structurer:
    """Walks regions of a graph and lets a callback emit each node once per path.

    Args:
        successors: the nodes that may follow each node; None stands for the end.
        emit: writes one node; it calls :meth:`region` for the branches of the node.
        where: the object of the program that the graph belongs to, for errors.
    """

    def __init__(
        self,
        successors: Mapping[str, Sequence[str | None]],
        emit: Callable[[str, "Structurer"], None],
        where: str,
    ) -> None:
        self._joins = join_points(successors, where)
        self._emit = emit
        self._where = where
        self._emitted = 0

    def join(self, node: str) -> str | None:
        """Return the node at which the branches of a node meet, or None for the end."""
        return self._joins[node]

    def region(self, start: str | None, stop: str | None) -> None:
        """Emit the nodes from ``start`` up to, and without, ``stop``.

        Raises:
            UnsupportedProgramError: the graph repeats its nodes too often to be unrolled.
        """
        node = start
        while node is not None and node != stop:
            self._emitted += 1
            if self._emitted > _EMITTED_NODES_LIMIT:
                raise UnsupportedProgramError(
                    "control flow this entangled", self._where, "structure it as nested if/else"
                )
            self._emit(node, self)
            node = self._joins[node]
