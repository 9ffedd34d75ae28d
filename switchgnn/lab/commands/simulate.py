"""`switchgnn simulate`: a plan, or a system, packet by packet."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from switchgnn.base.machine import size_text
from switchgnn.base.names import no_such
from switchgnn.base.options import (
    CONGESTION,
    DATA,
    NETWORK,
    PLAN,
    parse_bytes,
    shared_fields,
    with_groups,
)
from switchgnn.commands.shared import options as shared
from switchgnn.commands.shared.console import Steps, plain_console
from switchgnn.host.base.pace import CongestionRule
from switchgnn.host.direct.framing import USUAL_MTU, Framing
from switchgnn.host.wire.header import WIDEST
from switchgnn.lab.simulator.job import SimulateReport, simulate_job
from switchgnn.lab.simulator.request import (
    HOSTS_ALONE,
    LEAF,
    SYSTEMS,
    LeafSpineOptions,
    NetworkOptions,
    SimulateOptions,
    SimulatorError,
)
from switchgnn.lab.simulator.setup import BIN_SIZE
from switchgnn.lab.simulator.subject import SimulatedSystem
from switchgnn.planner.base.lanes import parse_lanes
from switchgnn.planner.costs.forecast import told_seconds
from switchgnn.planner.presets import AUTO, PAPER, slots_of_memory
from switchgnn.profiles import UNLIMITED, SwitchProfile

_MICRO, _GIGA = 1e-6, 1e9
_DEFAULT = NetworkOptions()
_STAR, _LEAF_SPINE = "star", "leaf-spine"
_DEFAULT_LEAF_SPINE = LeafSpineOptions()
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def _around(report: SimulateReport) -> str:
    network = report.options.leaf_spine
    if network is None:
        return "around one switch"
    ending = ", leaves complete sums" if network.completion == LEAF else ""
    return f"on {network.leaves} leaves with {network.spines} spines{ending}"


def _frames(report: SimulateReport) -> str:
    if not report.subject.setup.host_based:
        return ""
    mtu = report.options.framing.mtu
    each = "a fragment of a row each" if mtu is None else f"rows up to an MTU of {mtu:,}"
    return f", frames with {each}" + ", in phases" * report.options.phases


def _overlap(report: SimulateReport) -> str:
    if not report.subject.bins:
        return ""
    return (
        f", of which {report.subject.bins:,} bins hide {report.overlapped_seconds * 1e3:,.3f} ms "
        "(a model)"
    )


def _chosen(subject: SimulatedSystem) -> list[str]:
    """Return a line about what `auto` took; nothing of other systems."""
    if subject.chosen is None or not subject.predicted_seconds:
        return []
    told = {name: told_seconds(each) for name, each in subject.predicted_seconds.items()}
    chosen = told.pop(subject.chosen)
    others = ", ".join(f"{name} {each}" for name, each in told.items())
    left = f"; hosts make {subject.left:,} sums" if subject.left else ""
    return [f"auto takes {subject.chosen}: predicted {chosen} ({others}){left}"]


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
        f"{size_text(run.peak_memory_bytes)}"
    )
    return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class SimulateCommandOptions:
    """The options of `switchgnn simulate`."""

    plan: Path | None = DATA.option(
        "FOLDER", "Simulate the plan in this folder, instead of --graph, --workers and --memory."
    )
    check: bool | None = DATA.option(
        None, "Check that plan first.", "--check/--no-check", shown="if others may have changed it"
    )
    graph: str | None = DATA.option(
        "GRAPH",
        "A graph as for `switchgnn plan`; with --plan, that of a plan that leaves destinations "
        "to the hosts.",
    )
    workers: int | None = shared.workers_option(None)
    layers: int = DATA.option(
        "N", "An epoch has N forward exchanges and N - 1 backward ones.", default=4, min=1
    )
    features: int = DATA.option("N", "Use features of N numbers.", default=128, min=1, max=WIDEST)
    seed: int = shared.seed_option()
    system: str | None = PLAN.option(
        "NAME",
        f"{', '.join(SYSTEMS)}; with a plan one of {', '.join((*HOSTS_ALONE, AUTO))}, on its "
        "partition.",
    )
    memory: shared.MemoryOptions
    slot_features: int | None = PLAN.option(
        "N",
        "Let a slot hold a whole feature of N numbers, 4 bytes each, as in the paper.",
        min=1,
        shown="a slot holds a fragment",
    )
    strategies: shared.StrategyOptions
    bin_size: int | None = PLAN.option(
        "N", "Put N vertices into a bin of g3.", min=1, shown=f"{BIN_SIZE:,}"
    )
    topology: str = NETWORK.option("NAME", "Simulate a star or a leaf-spine.", default=_STAR)
    leaves: int | None = NETWORK.option(
        "N", "Spread the workers over N leaves.", min=1, shown=str(_DEFAULT_LEAF_SPINE.leaves)
    )
    spines: int | None = NETWORK.option(
        "N", "Put N spines above the leaves.", min=1, shown=str(_DEFAULT_LEAF_SPINE.spines)
    )
    completion: str | None = NETWORK.option(
        "NAME",
        "Complete sums that cross a leaf-spine in spines (spine), like the P4 program, or in the "
        "destination's leaf (leaf), which the program does not implement.",
        shown=_DEFAULT_LEAF_SPINE.completion,
    )
    bandwidth: float | None = NETWORK.option(
        "MBIT/S",
        "Limit each link, in each direction, to this many Mbit/s.",
        shown=f"of the switch's ports, or {_DEFAULT.bandwidth:g}",
    )
    delay: float = NETWORK.option(
        "NUMBER", "Each link delays frames by this many microseconds.", default=_DEFAULT.delay
    )
    overhead: int = NETWORK.option(
        "BYTES",
        "Add this many bytes to each frame on a link, beside those that are counted.",
        default=_DEFAULT.overhead,
    )
    window: int = NETWORK.option(
        "N", "Let each worker have N features in flight.", default=_DEFAULT.window, min=1
    )
    mtu: str = NETWORK.option(
        "BYTES",
        "Where hosts alone send, pack rows into IP packets of at most this size; fragment: put one "
        "fragment of a row in each frame, as for the switch.",
        default=str(USUAL_MTU),
    )
    phases: bool = NETWORK.flag(
        "Where hosts alone send, let each of them get rows of one other at a time.", "--phases"
    )
    sampling: float = NETWORK.option(
        "P",
        "Send this share of the rows forward, BNS-GCN's p (bns-gcn, paper, best, --plan).",
        default=1.0,
        min=0.0001,
        max=1.0,
    )
    timeout: float | None = NETWORK.option(
        "NUMBER",
        "Ask for a missing packet after this many microseconds at least.",
        shown="ten round trips of an empty network",
    )
    recirculation_rate: float | None = NETWORK.option(
        "RATE",
        "The switch's loop takes this many passes per second.",
        shown="the switch's, or no limit",
    )
    buffer: str | None = CONGESTION.option(
        "SIZE",
        "Each queue holds this size, such as 500kB; packets that do not fit are lost.",
        shown="no limit",
    )
    ecn_threshold: int = CONGESTION.option(
        "N",
        "Mark packets that find N or more in a queue.",
        default=_DEFAULT.ecn_threshold or 0,
        min=0,
    )
    congestion: CongestionRule = shared.congestion_option()
    background_load: float = CONGESTION.option(
        "SHARE",
        "Run flows between the workers that take this mean share of each link's rate.",
        default=_DEFAULT.background_load,
    )
    as_json: bool = shared.json_option()

    def options(self) -> SimulateOptions:
        """Return the simulation that is asked for, after a check of what is given."""
        profile = self.memory.profile or UNLIMITED
        size = self.memory.memory_bytes
        if size is None and self.plan is None:
            size = profile.slot_bytes
        given, request = self.strategies.lanes, self.strategies.with_preset(PAPER)
        lanes = None if given is None else parse_lanes(given, [self.features])
        rows = 1 if self.strategies.rows is None else request.rows
        return SimulateOptions(
            **shared_fields(self, SimulateOptions),
            slots=None if size is None else slots_of_memory(size, self.slot_features),
            network=self._network(profile),
            leaf_spine=self._leaf_spine(),
            request=replace(request, lanes=lanes, rows=rows),
            framing=Framing.parse(self.mtu),
            switch=profile,
            table_memory=self.memory.table_bytes,
        )

    def _network(self, profile: SwitchProfile) -> NetworkOptions:
        given = shared_fields(self, NetworkOptions)
        usual = {
            "bandwidth": profile.bandwidth or _DEFAULT.bandwidth,
            "recirculation_rate": profile.passes_per_second,
        }
        given |= {name: it for name, it in usual.items() if given[name] is None}
        given["buffer"] = None if self.buffer is None else parse_bytes("--buffer", self.buffer)
        return NetworkOptions(**given, background_seed=self.seed)

    def _leaf_spine(self) -> LeafSpineOptions | None:
        named = shared_fields(self, LeafSpineOptions)
        given = {name: it for name, it in named.items() if it is not None}
        if self.topology == _LEAF_SPINE:
            return LeafSpineOptions(**given)
        if self.topology != _STAR:
            raise SimulatorError(no_such("topology", self.topology, (_STAR, _LEAF_SPINE)))
        if given:
            raise SimulatorError(
                "A star has one switch: --leaves, --spines and --completion need --topology "
                f"{_LEAF_SPINE}."
            )
        return None


@app.command(epilog="Example: switchgnn simulate --graph karate --workers 4 --system paper")
@with_groups
def simulate(asked: SimulateCommandOptions) -> None:
    """Simulate one exchange of a layer, packet by packet.

    Reports the duration of an epoch. Simulates the plan in the folder of --plan; or
    else what --system makes for --graph: bns-gcn (hosts send copies), host-partial
    (copies or partial sums, whichever are fewer), g3 (copies with its partition
    and bins), strawman (slots first come, first served), paper or best (plans).
    """
    if asked.plan is not None and not (asked.workers is None and asked.memory.memory is None):
        raise typer.BadParameter("A plan has its own: leave --workers and --memory out.")
    if asked.plan is None and None in (asked.graph, asked.workers, asked.system):
        raise typer.BadParameter("Give --plan, or --graph, --workers and --system.")
    options = asked.options()
    with Steps() as steps:
        report = simulate_job(options, steps.tell)
    if asked.as_json:
        typer.echo(json.dumps(report.to_dict()))
        return
    plain_console(highlight=False, soft_wrap=True).print(report_text(report))
