# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Generate a control's tables and conditions as nested if/else."""

from collections.abc import Mapping, Sequence

from switchgnn.softswitch.codegen.arithmetic import Term, constant, unsigned
from switchgnn.softswitch.codegen.expressions import FunctionContext
from switchgnn.softswitch.codegen.primitives import write_primitive
from switchgnn.softswitch.codegen.structure import Structurer, write_graph
from switchgnn.softswitch.program import (
    ActionCall,
    ActionSpec,
    Conditional,
    Control,
    DirectCall,
    KeyField,
    Primitive,
    TableSpec,
)

_JUMPS = frozenset(("_jump", "_jump_if_zero"))


def write_action(ctx: FunctionContext, action: ActionSpec, parameters: Sequence[Term]) -> None:
    """Append the code of an action whose parameters have these values."""
    outer = ctx.expressions
    ctx.at(f"action '{action.name}' of {ctx.stage}", parameters)
    if any(primitive.op in _JUMPS for primitive in action.primitives):
        _write_with_jumps(ctx, action)
    else:
        for primitive in action.primitives:
            write_primitive(ctx, primitive)
    ctx.expressions = outer


def _write_with_jumps(ctx: FunctionContext, action: ActionSpec) -> None:
    primitives = action.primitives
    successors = {str(i): _successors(ctx, primitives, i) for i in range(len(primitives))}

    def emit(node: str, structurer: Structurer) -> None:
        primitive = primitives[int(node)]
        if primitive.op == "_jump_if_zero":
            _write_branch(ctx, primitive, successors[node], structurer.join(node), structurer)
        elif primitive.op != "_jump":
            write_primitive(ctx, primitive)

    where = f"action '{action.name}'"
    write_graph(ctx.writer, successors, "0", emit, where=where, place="_j")


def _successors(
    ctx: FunctionContext, primitives: Sequence[Primitive], index: int
) -> tuple[str | None, ...]:
    def node(number: int) -> str | None:
        return str(number) if number < len(primitives) else None

    primitive = primitives[index]
    if primitive.op not in _JUMPS:
        return (node(index + 1),)
    target = ctx.term(primitive.parameters[-1]).constant
    if target is None:
        raise ctx.refuse("a jump to a variable offset", "use if statements")
    return (node(target),) if primitive.op == "_jump" else (node(index + 1), node(target))


def _write_branch(
    ctx: FunctionContext,
    primitive: Primitive,
    targets: Sequence[str | None],
    join: str | None,
    structurer: Structurer,
) -> None:
    condition = ctx.term(primitive.parameters[0])
    with ctx.writer.block(f"if {condition.text}:"):
        structurer.region(targets[0], join)
    if targets[1] != join:
        with ctx.writer.block("else:"):
            structurer.region(targets[1], join)


Node = TableSpec | Conditional | DirectCall


class PipelineWriter:
    """Writes one pipeline into a function body."""

    def __init__(self, ctx: FunctionContext, pipeline: Control) -> None:
        self._ctx = ctx
        self._actions = ctx.layout.program.actions
        self._nodes: Mapping[str, Node] = {
            **pipeline.tables,
            **pipeline.conditionals,
            **pipeline.calls,
        }
        self._initial = pipeline.initial
        self._exits = any(
            primitive.op == "exit"
            for table in pipeline.tables.values()
            for ident in table.actions.values()
            for primitive in self._actions[ident].primitives
        )

    def write(self) -> None:
        """Append the pipeline."""
        successors = {name: _next_nodes(node) for name, node in self._nodes.items()}
        if not self._exits:
            self._write_nodes(successors)
            return
        self._ctx.line("ex = 0")
        # A loop that runs once: exit leaves it from any depth.
        with self._ctx.writer.block("while True:"):
            self._write_nodes(successors)
            self._ctx.line("break")

    def _write_nodes(self, successors: Mapping[str, tuple[str | None, ...]]) -> None:
        where = f"control {self._ctx.stage}"
        writer = self._ctx.writer
        write_graph(writer, successors, self._initial, self._emit, where=where, place="_s")

    def _emit(self, name: str, structurer: Structurer) -> None:
        node = self._nodes[name]
        join = structurer.join(name)
        if isinstance(node, Conditional):
            self._write_conditional(node, join, structurer)
        elif isinstance(node, DirectCall):
            self._write_call(ActionCall(node.action, ()))
        else:
            self._write_table(node, join, structurer)

    def _write_conditional(
        self, node: Conditional, join: str | None, structurer: Structurer
    ) -> None:
        self._ctx.at(f"condition '{node.name}'")
        condition = self._ctx.term(node.expression).text
        if node.true_next == join:
            if node.false_next != join:
                with self._ctx.writer.block(f"if not ({condition}):"):
                    structurer.region(node.false_next, join)
            return
        with self._ctx.writer.block(f"if {condition}:"):
            structurer.region(node.true_next, join)
        if node.false_next != join:
            with self._ctx.writer.block("else:"):
                structurer.region(node.false_next, join)

    def _write_call(self, call: ActionCall) -> None:
        action = self._actions[call.action]
        write_action(self._ctx, action, [constant(value) for value in call.data])
        self._leave_on_exit(action)

    def _leave_on_exit(self, action: ActionSpec) -> None:
        if any(primitive.op == "exit" for primitive in action.primitives):
            self._ctx.line("if ex: break")

    def _write_table(self, table: TableSpec, join: str | None, structurer: Structurer) -> None:
        self._ctx.at(f"table '{table.name}'")
        if not table.key and table.default is not None and table.default_is_const:
            self._write_call(table.default)
            following = _after_default(table)
            if following != join:
                structurer.region(following, join)
            return
        self._write_lookup(table)
        self._write_dispatch(table, join, structurer)
        if _by_hit(table):
            self._write_hit_or_miss(table, join, structurer)

    def _write_lookup(self, table: TableSpec) -> None:
        names, line = self._ctx.names, self._ctx.line
        default = f"{names.default[table.name]}[0]"
        if not table.key:
            line(f"_e = {default}")
            if _by_hit(table):
                line("_h = False")
            return
        parts = [self._key_part(field) for field in table.key]
        key = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
        line(f"_e = {names.lookup[table.name]}({key})")
        if _by_hit(table):
            line("_h = _e is not None")
        with self._ctx.writer.block("if _e is None:"):
            line(f"_e = {default}")
        if table.with_counters:
            with self._ctx.writer.block("else:"):
                line("_c = _e[2]; _c[0] += 1; _c[1] += n")

    def _key_part(self, field: KeyField) -> str:
        header, name = field.target
        slot = self._ctx.layout.slot(header, name, self._ctx.expressions.where)
        text = self._ctx.expressions.load(slot).text
        if slot.signed:
            text = f"{text} & {slot.mask}"
        return text if field.mask is None else f"{text} & {field.mask}"

    def _write_dispatch(self, table: TableSpec, join: str | None, structurer: Structurer) -> None:
        branches = {
            number: (self._actions[ident], _after_action(table, name))
            for number, (name, ident) in enumerate(table.actions.items())
        }
        useful = {
            number: branch
            for number, branch in branches.items()
            if branch[0].primitives or (not _by_hit(table) and branch[1] != join)
        }
        if not useful:
            return
        self._ctx.line("_a = _e[0]")
        keyword = "if"
        for number, (action, following) in useful.items():
            with self._ctx.writer.block(f"{keyword} _a == {number}:"):
                self._write_entry_action(action)
                if not _by_hit(table):
                    structurer.region(following, join)
            keyword = "elif"
        if not _by_hit(table) and table.default is None and table.base_default_next != join:
            with self._ctx.writer.block("elif _a < 0:"):
                structurer.region(table.base_default_next, join)

    def _write_entry_action(self, action: ActionSpec) -> None:
        names = [f"_p{index}" for index in range(len(action.parameter_widths))]
        if names and action.primitives:
            self._ctx.line(f"{', '.join(names)}, = _e[1]")
        parameters = [
            unsigned(name, width)
            for name, width in zip(names, action.parameter_widths, strict=True)
        ]
        write_action(self._ctx, action, parameters)
        self._leave_on_exit(action)

    def _write_hit_or_miss(
        self, table: TableSpec, join: str | None, structurer: Structurer
    ) -> None:
        hit, miss = _hit_next(table), _miss_next(table)
        with self._ctx.writer.block("if _h:"):
            structurer.region(hit, join)
        with self._ctx.writer.block("else:"):
            structurer.region(miss, join)


def _by_hit(table: TableSpec) -> bool:
    return "__HIT__" in table.next_tables or "__MISS__" in table.next_tables


def _hit_next(table: TableSpec) -> str | None:
    return table.next_tables.get("__HIT__", table.base_default_next)


def _miss_next(table: TableSpec) -> str | None:
    return table.next_tables.get("__MISS__", table.base_default_next)


def _after_action(table: TableSpec, action: str) -> str | None:
    return table.next_tables.get(action, table.base_default_next)


def _after_default(table: TableSpec) -> str | None:
    if _by_hit(table):
        return _miss_next(table)
    names = {ident: name for name, ident in table.actions.items()}
    name = names.get(table.default.action) if table.default is not None else None
    return table.base_default_next if name is None else _after_action(table, name)


def _next_nodes(node: Node) -> tuple[str | None, ...]:
    if isinstance(node, Conditional):
        return (node.true_next, node.false_next)
    if isinstance(node, DirectCall):
        return (node.next_node,)
    if not node.key and node.default is not None and node.default_is_const:
        return (_after_default(node),)
    if _by_hit(node):
        return (_hit_next(node), _miss_next(node))
    nexts = [_after_action(node, name) for name in node.actions]
    if node.default is None:
        nexts.append(node.base_default_next)
    return tuple(nexts)
