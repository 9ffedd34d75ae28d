"""Output of `switchgnn plan`: tables for people, one object for programs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from textwrap import wrap
from typing import Any, TypeVar

from rich import box
from rich.table import Column, Table

from switchgnn.base.machine import Amount, size_text, size_unit
from switchgnn.commands.plan.job import PlanReport
from switchgnn.commands.shared.console import graph_text, numbers_table
from switchgnn.controller.check import Use
from switchgnn.jobs.report import strategy_names
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.costs.flow import OWN
from switchgnn.planner.costs.forecast import Outlook, told_seconds
from switchgnn.planner.costs.report import (
    COVER,
    HOST,
    ONCE,
    PLAN,
    SINGLE,
    STRAWMAN,
    DirectionReport,
    LeafSpineDirection,
    Load,
    TransportCost,
)
from switchgnn.planner.presets import PAPER, SLOT_BYTES
from switchgnn.profiles import PlanMemory

COLUMNS = 80
_MEGA, _GIGA, _MICRO = 1e6, 1e9, 1e-6
# Smaller tables hardly depend on the plan: ports, addresses, barriers.
_SHOWN_BYTES = 1_000
_ROWS = {
    PLAN: "this plan",
    PAPER: "paper",
    STRAWMAN: "strawman",
    HOST: "host, unpacked",
    ONCE: "each once",
    COVER: "lower bound",
}
_LEAF_SPINE_ROWS = {**_ROWS, SINGLE: "sums at spines only"}
Numbers = TypeVar("Numbers", DirectionReport, LeafSpineDirection)


def as_json(report: PlanReport) -> dict[str, Any]:
    """Return the report as plain data; the numbers at its top are those of the forward sums."""
    made, forward = report.made, report.directions[Direction.FORWARD.value]
    manifest = made.plan.manifest
    plan, host = forward.ways[PLAN], forward.ways[HOST]
    return {
        "graph": asdict(manifest.graph),
        "digest": manifest.digest,
        "strategy": made.request.preset,
        "reasons": list(made.strategies.because.values()),
        "seconds": dict(report.outlook.seconds),
        "chosen": report.outlook.chosen,
        "why": report.outlook.why,
        "loads": {name: asdict(load) for name, load in report.outlook.loads.items()},
        "left": {it.value: int(made.plan.left(it).sum()) for it in made.forecast.directions},
        **strategy_names(manifest),
        "workers": manifest.workers,
        "slots": manifest.slots,
        "memory_bytes": manifest.slots * SLOT_BYTES,
        "features": made.features,
        "fragments": len(report.frames),
        "frame_bytes": report.frames[0],
        "lanes": manifest.lanes,
        "rows": manifest.rows,
        "pools": manifest.pools,
        "traffic_fraction": plan.traffic_fraction,
        "packets_up": plan.up.packets,
        "packets_down": plan.down.packets,
        "host_packets": host.up.packets + host.down.packets,
        "boundary_vertices": forward.boundary_vertices,
        "boundary_edges": forward.boundary_edges,
        "copies_per_vertex": forward.copies_per_vertex,
        "blocks": manifest.blocks,
        "switch": None if made.switch is None else made.switch.name,
        "banks": made.context.banks,
        **made.memory.to_dict(),
        "passes_per_second": made.context.recirculation_rate,
        "loop_passes": made.memory.loop_passes,
        "loop_seconds": report.loop_seconds,
        "passes": forward.passes,
        "contributions": forward.contributions,
        "planning_seconds": made.seconds,
        "peak_memory_bytes": made.peak_memory_bytes,
        "memory_before_bytes": made.memory_before_bytes,
        "graph_bytes": made.graph.indptr.nbytes + made.graph.indices.nbytes,
        "directions": {name: asdict(each) for name, each in report.directions.items()},
        "leaf_spine": _leaf_spine_as_json(report),
    }


def _leaf_spine_as_json(report: PlanReport) -> dict[str, Any] | None:
    if report.leaf_spine is None or report.made.context.leaf_spine is None:
        return None
    leaf_spine = report.made.context.leaf_spine
    return {
        "leaves": leaf_spine.leaves,
        "spines": leaf_spine.spines,
        "directions": {name: asdict(each) for name, each in report.leaf_spine.items()},
    }


def alike_together(directions: Mapping[str, Numbers] | None) -> list[tuple[str, Numbers]]:
    """Return the names and the numbers of each direction; directions that are alike come as one."""
    distinct: list[Numbers] = []
    for each in (directions or {}).values():
        if each not in distinct:
            distinct.append(each)
    return [
        (" and ".join(name for name, other in (directions or {}).items() if other == each), each)
        for each in distinct
    ]


def facts(report: PlanReport) -> str:
    """Describe the plan as a whole."""
    manifest, reasons = report.made.plan.manifest, report.made.strategies.because.values()
    graph = manifest.graph
    memory = size_text(manifest.slots * SLOT_BYTES)
    rows = f", {manifest.rows} rows per frame," if manifest.rows > 1 else ""
    pools = f" in {manifest.pools} pools" if manifest.pools > 1 else ""
    return "\n".join(
        (
            f"{graph.name}: {graph_text(graph.vertices, graph.edges, manifest.strategy.send)}; "
            f"{Amount(manifest.workers):worker} ({manifest.partition.method})",
            f"{manifest.slots:,} slots of 32 numbers ({memory}){pools}: one fragment of up to "
            f"{manifest.lanes} numbers{rows} at",
            f"a time uses {pools and 'one of '}them, for {manifest.room:,} sums; "
            f"{report.made.features:,} features are "
            f"{Amount(len(report.frames)):fragment}",
            *(line for why in reasons for line in wrap(why, COLUMNS)),
        )
    )


def within_switch(report: PlanReport) -> str | None:
    """Describe the switch that was planned for, if one was named."""
    made = report.made
    switch = made.switch
    if switch is None:
        return None
    banks, memory = made.context.banks, made.memory
    line = (
        f"Switch {switch.name}{', as its P4 program is compiled' * switch.program_sizes}: "
        f"{Amount(banks):slot} in a pass; "
        f"{Amount(memory.loop_passes):pass} of its loop per fragment"
    )
    if report.loop_seconds is None:
        return f"{line}."
    rate = made.context.recirculation_rate
    return (
        f"{line}, at {rate:,.0f} per second at least "
        f"{report.loop_seconds / _MICRO:,.1f} µs for all of a feature."
    )


def costs(report: PlanReport) -> str:
    """Return the costs of planning."""
    made = report.made
    extra = made.peak_memory_bytes - made.memory_before_bytes
    return (
        f"Planned in {made.seconds:.2f} s; at most {size_text(made.peak_memory_bytes)} of memory, "
        f"{size_text(extra)} more than before."
    )


def sizes(report: DirectionReport) -> str:
    """Describe the blocks and tables of a direction."""
    return "\n".join(
        (
            f"{report.boundary_vertices:,} boundary vertices, {report.boundary_edges:,} boundary "
            f"edges, {report.copies_per_vertex:.1f} copies per vertex",
            f"{Amount(report.blocks):block} of up to {Amount(report.slots_used_max):slot} (mean "
            f"{report.slots_used_mean:,.0f}); {Amount(report.entries):table entry}",
            f"{Amount(report.passes):pass} for {Amount(report.contributions):contribution}: "
            f"{report.passes_per_contribution:.3f} each",
        )
    )


def ways_table(report: DirectionReport) -> Table:
    """Compare the plan with other ways to exchange the same features."""
    heaviest = max(max(cost.up.bytes_max, cost.down.bytes_max) for cost in report.ways.values())
    unit, size = size_unit(heaviest)
    title = f"packets of a fragment; {unit} of whole features: mean and max of the workers"
    table = _new_table(
        title, "", "of host", "packets up", "down", f"{unit} up", "max", f"{unit} down", "max"
    )
    for name, cost in _sorted(report.ways):
        table.add_row(
            _ROWS.get(name, name),
            f"{cost.traffic_fraction:.1%}",
            _short(cost.up.packets),
            _short(cost.down.packets),
            *_loads(cost.up, size),
            *_loads(cost.down, size),
        )
    return table


def outlook_table(outlook: Outlook, directions: int) -> Table:
    """Compare the predicted time and bytes with those of hosts alone."""
    network = outlook.network
    unit, size = size_unit(max(load.busiest for load in outlook.loads.values()))
    what = "one exchange" if directions == 1 else "both directions"
    title = (
        f"{what} at {network.bits_per_second / _GIGA:g} Gbit/s, "
        f"{network.delay / _MICRO:g} µs per link; hosts pack up to {network.mtu:,} bytes"
    )
    table = _new_table(title, "", "predicted", f"{unit} up", f"{unit} down", "busiest link")
    for name, load in outlook.loads.items():
        seconds = outlook.seconds.get(name)
        table.add_row(
            f"this plan ({name})" if name == outlook.plan else name,
            "" if seconds is None else told_seconds(seconds),
            *(f"{number / size:,.2f}" for number in (load.up, load.down, load.busiest)),
        )
    return table


def orders_table(report: DirectionReport, own: str) -> Table:
    """Compare queues and slots of the plan's order and of others."""
    title = "steps of a fragment; longest queue; most and mean slots in use"
    table = _new_table(title, "order", "steps", "queue", "slots", "of all", "mean", "of all")
    for name, order in report.orders.items():
        if name == own:
            continue  # the plan's own, once more
        table.add_row(
            f"this plan ({own})" if name == OWN else name,
            f"{order.steps:,}",
            f"{order.queue_max:,}",
            f"{order.slots_max:,}",
            f"{order.share_max:.1%}",
            f"{order.slots_mean:,.1f}",
            f"{order.share_mean:.1%}",
        )
    return table


def leaf_spine_table(direction: LeafSpineDirection) -> Table:
    """Compare the plan with other ways, on the links between leaves and spines."""
    heaviest = max(max(load.bytes_up, load.bytes_down) for load in direction.ways.values())
    unit, size = size_unit(heaviest)
    title = "between leaves and spines; packets of a fragment"
    table = _new_table(title, "", "packets up", "down", f"{unit} up", f"{unit} down")
    for name, load in direction.ways.items():
        table.add_row(
            _LEAF_SPINE_ROWS[name],
            _short(load.packets_up),
            _short(load.packets_down),
            f"{load.bytes_up / size:,.2f}",
            f"{load.bytes_down / size:,.2f}",
        )
    return table


def switches(direction: LeafSpineDirection) -> str:
    """Describe the links and slots of single switches."""
    return "\n".join(
        (
            f"At most {direction.packets_max:,} packets of a fragment one way on a link; barriers "
            f"are {direction.control_share:.1%} of the bytes",
            f"Slots in use in the fullest block: {_listed(direction.leaf_slots)} in the leaves, "
            f"{_listed(direction.spine_slots)} in the spines",
        )
    )


def memory_table(memory: PlanMemory) -> Table:
    """Return the large tables and registers, and the totals."""
    title = f"memory of the {'fullest ' if memory.switches > 1 else ''}switch"
    table = _new_table(title, "", "number", "room", "bits each", "size")
    for kind, uses, total in (
        ("table", memory.tables, memory.table_bytes),
        ("register", _banks_together(memory.registers), memory.register_bytes),
    ):
        for use in uses:
            if use.bytes >= _SHOWN_BYTES or not use.fits:
                table.add_row(
                    f"{kind} {use.name}",
                    f"{use.number:,}",
                    "-" if use.room is None else f"{use.room:,}",
                    f"{use.bits:,}",
                    size_text(use.bytes),
                )
        table.add_row(f"all {kind}s", "", "", "", size_text(total))
    return table


def _banks_together(registers: Iterable[Use]) -> list[Use]:
    found: dict[str, Use] = {}
    for use in registers:
        name = re.sub(r"^bank\d+\.", "banks.", use.name)
        known = found.get(name, replace(use, name=name, number=0, room=0))
        room = None if known.room is None or use.room is None else known.room + use.room
        found[name] = replace(known, number=known.number + use.number, room=room)
    return list(found.values())


def _new_table(title: str, first: str, *columns: str) -> Table:
    how: dict[str, Any] = {"box": box.SIMPLE_HEAD, "show_edge": False, "pad_edge": False}
    return numbers_table(title, Column(first, no_wrap=True), numbers=columns, **how)


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)


def left_out(report: DirectionReport, own: str) -> str:
    """Return a line about what the table lacks, or an empty one."""
    names = [_ROWS.get(name, name) for name in report.left_out if name != f"order {own}"]
    return f"Left out, as the graph is too large for it: {', '.join(names)}." if names else ""


def _sorted(ways: dict[str, TransportCost]) -> list[tuple[str, TransportCost]]:
    known = [name for name in _ROWS if name in ways]
    return [(name, ways[name]) for name in (*known, *(set(ways) - set(known)))]


def _short(number: int) -> str:
    return f"{number:,}" if number < _MEGA else f"{number / _MEGA:,.1f} M"


def _loads(load: Load, unit: float) -> tuple[str, str]:
    mean, largest = load.bytes_mean / unit, load.bytes_max / unit
    digits = 0 if largest >= 1000 else 2
    return f"{mean:,.{digits}f}", f"{largest:,.{digits}f}"
