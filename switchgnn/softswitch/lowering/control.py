"""Lower a control's tables and conditions, and the actions that they call."""

from collections.abc import Sequence

from switchgnn.softswitch.base import ir
from switchgnn.softswitch.base import program as bmv2
from switchgnn.softswitch.lowering import variables as var
from switchgnn.softswitch.lowering.arithmetic import bit_and, compare, constant, variable, wrap
from switchgnn.softswitch.lowering.expressions import FunctionContext
from switchgnn.softswitch.lowering.primitives import lower_primitive
from switchgnn.softswitch.lowering.structure import Structurer, lower_graph

_JUMPS = frozenset(("_jump", "_jump_if_zero"))
_HIT, _MISS = "__HIT__", "__MISS__"


def lower_action(
    ctx: FunctionContext, action: bmv2.ActionSpec, parameters: Sequence[ir.Expr]
) -> None:
    """Append an action whose parameters have these values."""
    before = ctx.where, ctx.parameters
    ctx.where, ctx.parameters = f"action '{action.name}' of {ctx.stage}", parameters
    if any(primitive.op in _JUMPS for primitive in action.primitives):
        _lower_with_jumps(ctx, action)
    else:
        for primitive in action.primitives:
            lower_primitive(ctx, primitive)
    ctx.where, ctx.parameters = before


def _lower_with_jumps(ctx: FunctionContext, action: bmv2.ActionSpec) -> None:
    primitives = action.primitives
    successors = {str(i): _successors(ctx, primitives, i) for i in range(len(primitives))}

    def emit(node: str, structurer: Structurer) -> None:
        primitive = primitives[int(node)]
        if primitive.op == "_jump_if_zero":
            condition = ctx.value(primitive.parameters[0])
            _lower_branch(ctx, condition, successors[node], structurer.join(node), structurer)
        elif primitive.op != "_jump":
            lower_primitive(ctx, primitive)

    lower_graph(ctx, successors, "0", emit, (var.STEP, var.STEPS))


def _successors(
    ctx: FunctionContext, primitives: Sequence[bmv2.Primitive], index: int
) -> tuple[str | None, ...]:
    def node(number: int) -> str | None:
        return str(number) if number < len(primitives) else None

    primitive = primitives[index]
    if primitive.op not in _JUMPS:
        return (node(index + 1),)
    target = ctx.value(primitive.parameters[-1]).constant
    if target is None:
        raise ctx.refuse("a jump to a variable offset", "use if statements")
    return (node(target),) if primitive.op == "_jump" else (node(index + 1), node(target))


def _lower_branch(
    ctx: FunctionContext,
    condition: ir.Expr,
    targets: Sequence[str | None],
    join: str | None,
    structurer: Structurer,
) -> None:
    blocks = []
    for target in targets:
        with ctx.block() as block:
            if target != join:
                structurer.region(target, join)
        blocks.append(tuple(block))
    if any(blocks):
        ctx.add(ir.either(condition, *blocks))


class ControlLowering:
    """Lowers one control."""

    def __init__(self, ctx: FunctionContext, control: bmv2.Control) -> None:
        self._ctx = ctx
        self._actions = ctx.layout.program.actions
        self._control = control
        called = {ident for table in control.tables.values() for ident in table.actions.values()}
        self._exits = any(_exits(self._actions[ident]) for ident in called)

    def lower(self) -> None:
        """Append the control."""
        if not self._exits:
            self._lower_nodes()
            return
        self._ctx.set(var.EXITED, constant(0))
        # A loop that runs once: exit leaves it from any depth.
        with self._ctx.block() as body:
            self._lower_nodes()
            self._ctx.add(ir.Simple.BREAK)
        self._ctx.add(ir.Repeat(tuple(body)))

    def _lower_nodes(self) -> None:
        successors = {name: _next_nodes(node) for name, node in self._control.nodes.items()}
        self._ctx.where = f"control {self._ctx.stage}"
        counters = (var.STATE, var.TURNS)
        lower_graph(self._ctx, successors, self._control.initial, self._emit, counters)

    def _emit(self, name: str, structurer: Structurer) -> None:
        node = self._control.nodes[name]
        join = structurer.join(name)
        if isinstance(node, bmv2.Conditional):
            self._ctx.where = f"condition '{node.name}'"
            condition = self._ctx.value(node.expression)
            targets = (node.true_next, node.false_next)
            _lower_branch(self._ctx, condition, targets, join, structurer)
        elif isinstance(node, bmv2.DirectCall):
            self._run(self._actions[node.action], [])
        else:
            self._lower_table(node, join, structurer)

    def _run(self, action: bmv2.ActionSpec, parameters: Sequence[ir.Expr]) -> None:
        lower_action(self._ctx, action, parameters)
        if _exits(action):
            self._ctx.add(ir.either(variable(var.EXITED), (ir.Simple.BREAK,)))

    def _lower_table(self, table: bmv2.TableSpec, join: str | None, structurer: Structurer) -> None:
        self._ctx.where = f"table '{table.name}'"
        if _always_default(table):
            number, data, _ = table.default
            action = self._actions[list(table.actions.values())[number]]
            self._run(action, [constant(value) for value in data])
            following = _after_default(table)
            if following != join:
                structurer.region(following, join)
            return
        key = []
        for field in table.key:
            value = wrap(self._ctx.field(*field.target), field.width)
            key.append(value if field.mask is None else bit_and(value, constant(field.mask)))
        self._ctx.add(ir.Lookup(table.name, tuple(key), var.HIT))
        self._lower_dispatch(table, join, structurer)
        if _by_hit(table):
            targets = (_after(table, _HIT), _after(table, _MISS))
            _lower_branch(self._ctx, variable(var.HIT), targets, join, structurer)

    def _lower_dispatch(
        self, table: bmv2.TableSpec, join: str | None, structurer: Structurer
    ) -> None:
        by_hit = _by_hit(table)
        branches: list[tuple[ir.Expr, tuple[ir.Statement, ...]]] = []
        for number, (name, ident) in enumerate(table.actions.items()):
            action, following = self._actions[ident], _after(table, name)
            if action.primitives or (not by_hit and following != join):
                with self._ctx.block() as block:
                    self._run(action, self._parameters(table, number, action))
                    if not by_hit:
                        structurer.region(following, join)
                is_this = compare("==", variable(var.ACTION), constant(number))
                branches.append((is_this, tuple(block)))
        if not by_hit and table.default[0] < 0 and table.base_default_next != join:
            with self._ctx.block() as block:
                structurer.region(table.base_default_next, join)
            branches.append((compare("<", variable(var.ACTION), constant(0)), tuple(block)))
        if branches:
            self._ctx.set(var.ACTION, ir.Expr("action", var.ACTION.low, var.ACTION.high))
            self._ctx.add(ir.If(tuple(branches)))

    def _parameters(
        self, table: bmv2.TableSpec, number: int, action: bmv2.ActionSpec
    ) -> list[ir.Expr]:
        found = []
        for index, width in enumerate(action.parameter_widths if action.primitives else ()):
            most = (1 << width) - 1
            places = (constant(number), constant(index))
            parameter = ir.Expr("parameter", 0, most, places, most, name=table.name)
            found.append(self._ctx.let(parameter))
        return found


def _exits(action: bmv2.ActionSpec) -> bool:
    return any(primitive.op == "exit" for primitive in action.primitives)


def _by_hit(table: bmv2.TableSpec) -> bool:
    return not {_HIT, _MISS}.isdisjoint(table.next_tables)


def _after(table: bmv2.TableSpec, outcome: str) -> str | None:
    return table.next_tables.get(outcome, table.base_default_next)


def _always_default(table: bmv2.TableSpec) -> bool:
    return not table.key and table.default[0] >= 0 and table.default_is_const


def _after_default(table: bmv2.TableSpec) -> str | None:
    if _by_hit(table):
        return _after(table, _MISS)
    return _after(table, list(table.actions)[table.default[0]])


def _next_nodes(node: bmv2.Node) -> tuple[str | None, ...]:
    if isinstance(node, bmv2.Conditional):
        return (node.true_next, node.false_next)
    if isinstance(node, bmv2.DirectCall):
        return (node.next_node,)
    if _always_default(node):
        return (_after_default(node),)
    if _by_hit(node):
        return (_after(node, _HIT), _after(node, _MISS))
    nexts = [_after(node, name) for name in node.actions]
    if node.default[0] < 0:
        nexts.append(node.base_default_next)
    return tuple(nexts)
