# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Structure a control-flow graph as nested if/else by post-dominators, or as a loop."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Protocol, TypeVar

from switchgnn.softswitch.codegen.layout import SourceWriter
from switchgnn.softswitch.errors import UnsupportedProgramError

Node = TypeVar("Node")

# Unstructured graphs repeat shared nodes; beyond this limit the function would be too long.
_EMITTED_NODES_LIMIT = 20_000
# Ends infinite loops, which would stop the switch; BMv2 has no limit.
MOST_TURNS = 1 << 20
_NOWHERE = ""  # no node has this name


def join_points(
    successors: Mapping[Node, Sequence[Node | None]],
) -> dict[Node, Node | None] | None:
    """Return each node's immediate post-dominator (None: the end), or None for a cyclic graph."""
    graph = {node: [n for n in nexts if n is not None] for node, nexts in successors.items()}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError:
        return None
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


class Structurer(Protocol):
    """Writes a graph and calls back for each node."""

    def join(self, node: str) -> str | None:
        """Return the node at which the branches of a node meet, or None for the end."""

    def region(self, start: str | None, stop: str | None) -> None:
        """Write the nodes from ``start`` up to, and without, ``stop``."""


Emit = Callable[[str, Structurer], None]


def write_graph(
    writer: SourceWriter,
    successors: Mapping[str, Sequence[str | None]],
    initial: str | None,
    emit: Emit,
    *,
    where: str,
    place: str,
) -> None:
    """Write a graph as nested if/else; one with loops as a loop around its parts."""
    joins = join_points(successors)
    if joins is not None:
        _Nested(joins, emit, where).region(initial, None)
    elif initial is not None:
        _Looping(writer, successors, emit, place).write(initial)


class _Nested:
    """Writes the regions of a graph without loops; each node once per path."""

    def __init__(self, joins: Mapping[str, str | None], emit: Emit, where: str) -> None:
        self._joins = joins
        self._emit = emit
        self._where = where
        self._emitted = 0

    def join(self, node: str) -> str | None:
        return self._joins[node]

    def region(self, start: str | None, stop: str | None) -> None:
        node = start
        while node is not None and node != stop:
            self._emitted += 1
            if self._emitted > _EMITTED_NODES_LIMIT:
                raise UnsupportedProgramError(
                    "control flow this entangled", self._where, "structure it as nested if/else"
                )
            self._emit(node, self)
            node = self._joins[node]


class _Looping:
    """Writes a cyclic graph as a loop over parts, with the next part in ``place``.

    A part begins where paths meet; nodes with one predecessor are written after it, so that every
    node is written once.
    """

    def __init__(
        self,
        writer: SourceWriter,
        successors: Mapping[str, Sequence[str | None]],
        emit: Emit,
        place: str,
    ) -> None:
        self._writer = writer
        self._successors = successors
        self._emit = emit
        self._place = place
        self._parts: dict[str, int] = {}

    def write(self, initial: str) -> None:
        entered = Counter(node for nexts in self._successors.values() for node in nexts)
        shared = [n for n, count in entered.items() if count > 1 and n != initial]
        self._parts = {n: number for number, n in enumerate((initial, *filter(None, shared)))}
        turns = f"{self._place}n"
        self._writer.line(f"{self._place} = {turns} = 0")
        with self._writer.block("while True:"):
            self._writer.line(f"{turns} += 1")
            self._writer.line(f"if {turns} > {MOST_TURNS}: break")
            for node, number in self._parts.items():
                with self._writer.block(f"if {self._place} == {number}:"):
                    self._write_from(node)
            # Not reached.
            self._writer.line("break")

    def join(self, node: str) -> str | None:
        nexts = self._successors[node]
        return nexts[0] if len(set(nexts)) == 1 else _NOWHERE

    def region(self, start: str | None, stop: str | None) -> None:
        if start is None:
            self._writer.line("break")
        elif start in self._parts:
            self._writer.line(f"{self._place} = {self._parts[start]}; continue")
        elif start != stop:
            self._write_from(start)

    def _write_from(self, node: str) -> None:
        self._emit(node, self)
        following = self.join(node)
        if following != _NOWHERE:
            self.region(following, None)
