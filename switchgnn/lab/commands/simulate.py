# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn simulate`: a plan, or a system, packet by packet in ns-3."""

import json
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.base.options import CONGESTION, DATA, NETWORK, OUTPUT, PLAN, parse_bytes, with_groups
from switchgnn.commands.shared.console import Steps, plain_console
from switchgnn.commands.shared.options import (
    ControlOption,
    NoControlOption,
    StrategyOptions,
    SwitchOption,
    TableMemoryOption,
    heeds_marks,
)
from switchgnn.host.wire.header import WIDEST
from switchgnn.lab.simulator import (
    BIN_SIZE,
    ETHERNET_MTU,
    FRAGMENT,
    LEAF,
    LeafSpineOptions,
    NetworkOptions,
    SimulatorError,
    parse_mtu,
)
from switchgnn.lab.simulator.job import simulate_job
from switchgnn.lab.simulator.report import SimulateReport
from switchgnn.lab.simulator.request import HOSTS_ALONE, SYSTEMS, SimulateOptions
from switchgnn.lab.simulator.subject import Subject
from switchgnn.planner.costs.forecast import told_seconds
from switchgnn.planner.lanes import parse_lanes
from switchgnn.planner.presets import AUTO, slots_of_memory
from switchgnn.profiles import UNLIMITED, find_profile

_MICRO, _GIGA = 1e-6, 1e9


def _around(report: SimulateReport) -> str:
    network = report.options.leaf_spine
    if network is None:
        return "around one switch"
    ending = ", leaves complete sums" if network.completion == LEAF else ""
    return f"on {network.leaves} leaves with {network.spines} spines{ending}"


def _frames(report: SimulateReport) -> str:
    if not report.subject.setup.host_based:
        return ""
    mtu = report.options.mtu
    each = "a fragment of a row each" if mtu == FRAGMENT else f"rows up to an MTU of {mtu:,}"
    return f", frames with {each}"


def _overlap(report: SimulateReport) -> str:
    if not report.subject.bins:
        return ""
    return (
        f", of which {report.subject.bins:,} bins hide {report.overlapped_seconds * 1e3:,.3f} ms "
        "(a model)"
    )


def _chosen(subject: Subject) -> list[str]:
    """Return a line about what `auto` took; nothing of other systems."""
    if subject.chosen is None or not subject.predicted_seconds:
        return []
    told = {way: told_seconds(seconds) for way, seconds in subject.predicted_seconds.items()}
    others = ", ".join(f"{way} {each}" for way, each in told.items() if way != subject.chosen)
    left = f"; hosts make {subject.left:,} sums" if subject.left else ""
    return [f"auto takes {subject.chosen}: predicted {told[subject.chosen]} ({others}){left}"]


def report_text(report: SimulateReport) -> str:
    """Return what a simulation came to, for people."""
    run, subject = report.run, report.subject
    network = report.options.network
    lines = [
        f"{subject.graph}: {subject.system}, {subject.setup.workers} workers {_around(report)}, "
        f"{network.bandwidth / 1e3:g} Gbit/s, {network.delay:g} µs" + _frames(report),
        f"One layer of {report.options.features} features: {run.seconds / _MICRO:,.1f} µs; the "
        f"busiest link alone takes {report.busiest_link_seconds / _MICRO:,.1f} µs",
        f"{report.bytes:,} bytes on all links; the longest queue of a port "
        f"{run.max_port_queue_bytes:,.0f}, of all together {run.max_queue_bytes:,.0f} bytes",
    ]
    lines += _chosen(subject)
    if run.inside is not None:
        lines.append(
            f"{run.inside.bytes:,} bytes of them between leaves and spines; "
            f"{sum(run.inside.sums_up):,} partial sums"
        )
    if subject.slots:
        lines.append(
            f"{run.sums:,} sums leave ({report.aggregation_bits_per_second / _GIGA:,.1f} Gbit/s), "
            f"{run.overflowed:,} features overflow; {run.passes:,} passes; at most "
            f"{run.max_slots:,} of {subject.slots:,} slots in use, in {subject.setup.blocks:,} "
            "blocks"
        )
    if subject.memory is not None:
        switch = report.options.switch
        rate = network.recirculation_rate
        loop = "" if rate is None else f", {rate:,.0f} passes per second"
        lines.append(
            f"Switch {switch.name}: {switch.banks} slot{'s' if switch.banks != 1 else ''} in a "
            f"pass{loop}; tables of {subject.memory.table_bytes:,} bytes"
        )
    if network.buffer is not None:
        lines.append(
            f"{run.lost:,} packets lost; {run.recalled:,} questions, {run.sent_again:,} packets "
            "sent again"
        )
    if run.background is not None:
        flows = run.background
        lines.append(
            f"Background: {flows.flows:,} flows, {flows.bytes:,} bytes; {flows.lost:,} frames "
            f"lost; {flows.mean_slowdown:,.1f} times as long as in an empty network on average, "
            f"99 % of them at most {flows.high_slowdown:,.1f} times"
        )
    lines.append(
        f"An epoch of {report.options.layers} layers: {report.epoch_seconds * 1e3:,.3f} ms, "
        f"{report.communication_seconds * 1e3:,.3f} ms of it communication, "
        f"{report.compute_seconds * 1e3:,.3f} ms computing (a model)" + _overlap(report)
    )
    lines.append(
        f"Simulated in {run.wall_seconds:,.2f} s: {run.events:,} events, "
        f"{run.events / run.wall_seconds:,.0f} per second, at most "
        f"{run.peak_memory_bytes / 1e6:,.0f} MB"
    )
    return "\n".join(lines)


_DEFAULT = NetworkOptions()
_STAR, _LEAF_SPINE = "star", "leaf-spine"
_DEFAULT_LEAF_SPINE = LeafSpineOptions()


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: switchgnn simulate --graph karate --workers 4 --system paper")
@with_groups
def simulate(
    *,
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=DATA,
            show_default=False,
            help="With a plan, in place of --graph, --workers and --memory.",
        ),
    ] = None,
    check: Annotated[
        bool | None,
        typer.Option(
            "--check/--no-check",
            rich_help_panel=DATA,
            show_default="if others may have changed it",
            help="Check that plan first.",
        ),
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            metavar="GRAPH",
            rich_help_panel=DATA,
            show_default=False,
            help="As `switchgnn plan` takes it; with --plan that of a plan that leaves "
            "destinations to the hosts.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=128,
            metavar="N",
            rich_help_panel=DATA,
            show_default=False,
            help="Number of workers.",
        ),
    ] = None,
    layers: Annotated[
        int,
        typer.Option(min=1, metavar="N", rich_help_panel=DATA, help="Exchanges in an epoch."),
    ] = 4,
    features: Annotated[
        int,
        typer.Option(
            min=1, max=WIDEST, metavar="N", rich_help_panel=DATA, help="Numbers per feature."
        ),
    ] = 128,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            rich_help_panel=DATA,
            help="For partition, blocks, order and background.",
        ),
    ] = 0,
    system: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=PLAN,
            show_default=False,
            help=f"{', '.join(SYSTEMS)}; with a plan one of "
            f"{', '.join((*HOSTS_ALONE, AUTO))}, on its partition.",
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            rich_help_panel=PLAN,
            show_default="the switch's, or the program's",
            help="Of the switch, as 10MB: 128 bytes are a slot.",
        ),
    ] = None,
    switch: SwitchOption = None,
    table_memory: TableMemoryOption = None,
    slot_features: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel=PLAN,
            show_default="a slot holds a fragment",
            help="A slot holds a whole feature of so many numbers, 4 bytes each, as the paper "
            "counts.",
        ),
    ] = None,
    strategies: StrategyOptions,
    bin_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel=PLAN,
            show_default=f"{BIN_SIZE:,}",
            help="Vertices of a bin of g3.",
        ),
    ] = None,
    topology: Annotated[
        str, typer.Option(metavar="NAME", rich_help_panel=NETWORK, help="star or leaf-spine.")
    ] = _STAR,
    leaves: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel=NETWORK,
            show_default=str(_DEFAULT_LEAF_SPINE.leaves),
            help="Switches with workers.",
        ),
    ] = None,
    spines: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel=NETWORK,
            show_default=str(_DEFAULT_LEAF_SPINE.spines),
            help="Switches between leaves.",
        ),
    ] = None,
    completion: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=NETWORK,
            show_default=_DEFAULT_LEAF_SPINE.completion,
            help="Of a leaf-spine: which switches complete sums that cross it. spine: as the P4 "
            "program does; leaf: the destination's, a variant that it does not implement.",
        ),
    ] = None,
    bandwidth: Annotated[
        float | None,
        typer.Option(
            metavar="MBIT/S",
            rich_help_panel=NETWORK,
            show_default=f"of the switch's ports, or {_DEFAULT.bandwidth:g}",
            help="Of each link in each direction.",
        ),
    ] = None,
    delay: Annotated[
        float,
        typer.Option(metavar="NUMBER", rich_help_panel=NETWORK, help="Microseconds on each link."),
    ] = _DEFAULT.delay,
    overhead: Annotated[
        int,
        typer.Option(
            metavar="BYTES",
            rich_help_panel=NETWORK,
            help="That a frame takes on a link beside those that are counted.",
        ),
    ] = _DEFAULT.overhead,
    window: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", rich_help_panel=NETWORK, help="Features in flight per worker."
        ),
    ] = _DEFAULT.window,
    mtu: Annotated[
        str,
        typer.Option(
            metavar="BYTES",
            rich_help_panel=NETWORK,
            help="Where hosts alone send: of the largest IP packet, into which rows are packed; "
            "fragment: one fragment of a row in each frame, as with the switch.",
        ),
    ] = str(ETHERNET_MTU),
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=NETWORK,
            show_default="ten round trips of an empty network",
            help="Microseconds, at least, until what does not come is asked for.",
        ),
    ] = None,
    recirculation_rate: Annotated[
        float | None,
        typer.Option(
            metavar="RATE",
            rich_help_panel=NETWORK,
            show_default="the switch's, or no limit",
            help="Passes per second of the switch's loop.",
        ),
    ] = None,
    buffer: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            rich_help_panel=CONGESTION,
            show_default="no limit",
            help="Of each queue of the switch, as 500kB: what does not fit is lost.",
        ),
    ] = None,
    ecn_threshold: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            rich_help_panel=CONGESTION,
            help="Packets in a queue from which on they are marked.",
        ),
    ] = _DEFAULT.ecn_threshold or 0,
    no_congestion_control: NoControlOption = False,
    congestion_control: ControlOption = False,
    background_load: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            rich_help_panel=CONGESTION,
            help="Flows between the workers: their mean share of each link's rate.",
        ),
    ] = _DEFAULT.background_load,
    as_json: Annotated[
        bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print one JSON object.")
    ] = False,
) -> None:
    """Simulate one exchange of a layer in ns-3.

    Says what an epoch takes. Simulates the plan in the folder of --plan; or else
    makes what --system has for --graph: bns-gcn (hosts send copies), host-partial
    (copies or partial sums, whichever are fewer), g3 (copies with its partition
    and bins), strawman (slots first come, first served), paper or best (plans).
    """
    if plan is not None and not (workers is None and memory is None):
        raise typer.BadParameter("a plan has its own workers and memory")
    if plan is None and (graph is None or workers is None or system is None):
        raise typer.BadParameter("give --plan, or --graph, --workers and --system")
    profile = UNLIMITED if switch is None else find_profile(switch)
    size = None if memory is None else parse_bytes("--memory", memory)
    if size is None and plan is None:
        size = profile.slot_bytes
    options = SimulateOptions(
        plan=plan,
        graph=graph,
        workers=workers,
        slots=None if size is None else slots_of_memory(size, slot_features),
        system=system,
        layers=layers,
        features=features,
        seed=seed,
        network=NetworkOptions(
            bandwidth=(profile.bandwidth or _DEFAULT.bandwidth) if bandwidth is None else bandwidth,
            delay=delay,
            overhead=overhead,
            buffer=None if buffer is None else parse_bytes("--buffer", buffer),
            ecn_threshold=ecn_threshold,
            window=window,
            congestion_control=heeds_marks(
                control=congestion_control, no_control=no_congestion_control
            ),
            recirculation_rate=profile.passes_per_second
            if recirculation_rate is None
            else recirculation_rate,
            timeout=timeout,
            background_load=background_load,
            background_seed=seed,
        ),
        leaf_spine=_leaf_spine(topology, leaves, spines, completion),
        slot_features=slot_features,
        asked=strategies.asked(),
        bin_size=bin_size,
        lanes=None if strategies.lanes is None else parse_lanes(strategies.lanes, [features]),
        check=check,
        mtu=parse_mtu(mtu),
        switch=profile,
        table_memory=None if table_memory is None else parse_bytes("--table-memory", table_memory),
    )
    steps = Steps()
    with steps:
        report = simulate_job(options, steps.tell)
    if as_json:
        typer.echo(json.dumps(report.to_dict()))
        return
    plain_console(highlight=False, soft_wrap=True).print(report_text(report))


def _leaf_spine(
    topology: str, leaves: int | None, spines: int | None, completion: str | None
) -> LeafSpineOptions | None:
    """Return the leaf-spine that was asked for; None: a star."""
    if topology == _LEAF_SPINE:
        return LeafSpineOptions(
            leaves=_DEFAULT_LEAF_SPINE.leaves if leaves is None else leaves,
            spines=_DEFAULT_LEAF_SPINE.spines if spines is None else spines,
            completion=_DEFAULT_LEAF_SPINE.completion if completion is None else completion,
        )
    if topology != _STAR:
        raise SimulatorError(f"No topology {topology!r}; known: {_STAR}, {_LEAF_SPINE}.")
    if leaves is not None or spines is not None or completion is not None:
        raise SimulatorError(
            "A star has one switch: --leaves, --spines and --completion need --topology "
            f"{_LEAF_SPINE}."
        )
    return None
