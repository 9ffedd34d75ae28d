# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What `switchgnn simulate` prints of its report."""

from switchgnn.planner.costs.forecast import told_seconds
from switchgnn.simulator import FRAGMENT, LEAF
from switchgnn.simulator.report import SimulateReport
from switchgnn.simulator.subject import Subject

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
