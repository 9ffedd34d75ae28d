"""Structure a control-flow graph as nested if/else by post-dominators, or as a loop."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

from switchgnn.softswitch.base import ir
from switchgnn.softswitch.base.errors import UnsupportedProgramError
from switchgnn.softswitch.lowering.arithmetic import add, compare, constant, variable
from switchgnn.softswitch.lowering.expressions import FunctionContext

Node = TypeVar("Node")

# Unstructured graphs repeat shared nodes; beyond this limit a function would be too long.
_EMITTED_NODES_LIMIT = 20_000
_NOWHERE = ""  # no node has this name


def join_points(successors: Mapping[Node, Sequence[Node | None]]) -> dict[Node, Node | None] | None:
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


Emit = Callable[[str, "Structurer"], None]
# The variables of a loop over parts: the next part, and the turns so far.
LoopVariables = tuple[ir.Variable, ir.Variable]


def lower_graph(
    ctx: FunctionContext,
    successors: Mapping[str, Sequence[str | None]],
    initial: str | None,
    emit: Emit,
    counters: LoopVariables,
) -> None:
    """Lower a graph to nested if/else; one with loops to a loop around its parts."""
    joins = join_points(successors)
    if joins is not None:
        _Nested(joins, emit, ctx.where).region(initial, None)
    elif initial is not None:
        _Looping(ctx, successors, emit, counters).lower(initial)


class _Nested:
    """Lowers the regions of a graph without loops; each node once per path."""

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


@dataclass
class _Looping:
    """Lowers a cyclic graph to a loop over parts.

    A part begins where paths meet; nodes with one predecessor follow it, so that every node is
    lowered once.
    """

    ctx: FunctionContext
    successors: Mapping[str, Sequence[str | None]]
    emit: Emit
    counters: LoopVariables
    parts: dict[str, int] = field(default_factory=dict)

    def lower(self, initial: str) -> None:
        entered = Counter(node for nexts in self.successors.values() for node in nexts)
        shared = [n for n, count in entered.items() if count > 1 and n != initial]
        self.parts = {n: number for number, n in enumerate((initial, *filter(None, shared)))}
        ctx, (part, turns) = self.ctx, self.counters
        ctx.set(part, constant(0))
        ctx.set(turns, constant(0))
        with ctx.block() as body:
            ctx.set(turns, add(variable(turns), constant(1)))
            with ctx.when(compare(">", variable(turns), constant(ir.MOST_TURNS))):
                ctx.add(ir.Simple.BREAK)
            for node, number in self.parts.items():
                with ctx.when(compare("==", variable(part), constant(number))):
                    self._lower_from(node)
            # Not reached.
            ctx.add(ir.Simple.BREAK)
        ctx.add(ir.Repeat(tuple(body)))

    def join(self, node: str) -> str | None:
        nexts = self.successors[node]
        return nexts[0] if len(set(nexts)) == 1 else _NOWHERE

    def region(self, start: str | None, stop: str | None) -> None:
        if start is None:
            self.ctx.add(ir.Simple.BREAK)
        elif start in self.parts:
            self.ctx.set(self.counters[0], constant(self.parts[start]))
            self.ctx.add(ir.Simple.CONTINUE)
        elif start != stop:
            self._lower_from(start)

    def _lower_from(self, node: str) -> None:
        self.emit(node, self)
        following = self.join(node)
        if following != _NOWHERE:
            self.region(following, None)


Structurer = _Nested | _Looping
