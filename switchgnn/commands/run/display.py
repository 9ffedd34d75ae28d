# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What `switchgnn run` prints of its report."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from switchgnn.commands.run.report import RunReport
from switchgnn.commands.shared.leaf_spine_display import leaf_spine_table
from switchgnn.commands.shared.releases import too_many_releases
from switchgnn.commands.shared.sentences import captured_line, counted, ran_as, strategies_line
from switchgnn.host.direct.framing import FRAGMENT
from switchgnn.host.registry import HOST, HOST_PARTIAL
from switchgnn.planner.presets import PAPER


def print_report(console: Console, report: RunReport) -> None:
    """Print what came of a run, for people."""
    console.print(
        f"{report.graph}: {report.vertices:,} vertices, {report.edges:,} directed edges, "
        f"{report.boundary_vertices:,} boundary vertices; {report.workers} workers, "
        f"{report.blocks} block{'s' if report.blocks != 1 else ''} of at most "
        f"{report.slots:,} slots, frames of up to {report.lanes} numbers; "
        f"{report.rounds} rounds of {report.features} features",
        soft_wrap=True,
    )
    console.print(f"Ran on: {report.reason}{ran_as(report, report.hosts)}.", soft_wrap=True)
    console.print(f"Plan: {strategies_line(report)}.", soft_wrap=True, highlight=False)
    if report.strategy != PAPER:
        for why in report.why:
            console.print(f"  {why}", soft_wrap=True, highlight=False)
    console.print(_worker_table(report))
    console.print(_beside_hosts(report), soft_wrap=True, highlight=False)
    if report.leaf_spine is not None:
        console.print(leaf_spine_table(report.leaf_spine))
    console.print(
        f"Switch{'' if report.leaf_spine is None else 'es'}: {report.passes:,} passes "
        f"for {report.contributions:,} contributions "
        f"({report.passes / max(1, report.contributions):.2f} passes each), "
        f"{report.table_entries:,} table entries; "
        f"plan {report.plan_seconds:.2f} s, install {report.install_seconds:.2f} s, "
        f"exchange {report.seconds:.2f} s",
        soft_wrap=True,
    )
    if report.marked or report.background_bytes:
        console.print(_queues(report), soft_wrap=True)
    if report.faults_injected:
        console.print(counted("Faults injected", report.faults_injected), soft_wrap=True)
        console.print(counted("Repairs", report.repairs), soft_wrap=True)
    if suspicion := too_many_releases([worker.releases for worker in report.per_worker]):
        console.print(suspicion, soft_wrap=True)
    if report.pcap:
        console.print(captured_line(list(map(Path, report.pcap))), soft_wrap=True, highlight=False)
    within = "within" if report.max_error <= report.error_bound else "NOT WITHIN"
    if report.exact:
        console.print(
            Text.assemble(
                ("Every sum equals the reference", "bold green"),
                f": fixed point to the bit, float off by {report.max_error:.3g}, {within} the "
                f"bound {report.error_bound:.3g}.",
            ),
            soft_wrap=True,
        )
    else:
        console.print(
            Text.assemble(
                (f"{report.wrong_sums:,} sums differ from the reference", "bold red"),
                f"; float off by {report.max_error:.3g}, {within} the bound "
                f"{report.error_bound:.3g}.",
            ),
            soft_wrap=True,
        )


def _worker_table(report: RunReport) -> Table:
    table = Table(title=f"Bytes on the wire, counted by {report.wires}")
    for name in ("worker", "sent", "sums", "bytes up", "bytes down", "s"):
        table.add_column(name, justify="right")
    for worker in report.per_worker:
        table.add_row(
            str(worker.worker),
            *_numbers(
                worker.features_sent, worker.sums_received, worker.bytes_up, worker.bytes_down
            ),
            f"{worker.seconds:.2f}",
        )
    table.add_section()
    sent = sum(worker.features_sent for worker in report.per_worker)
    sums = sum(worker.sums_received for worker in report.per_worker)
    table.add_row(
        "all", *_numbers(sent, sums, report.bytes_up, report.bytes_down), f"{report.seconds:.2f}"
    )
    table.add_section()
    for name, up, down in (
        (HOST.name, report.host_bytes_up, report.host_bytes_down),
        (HOST_PARTIAL.name, report.host_partial_bytes_up, report.host_partial_bytes_down),
    ):
        table.add_row(name, "", "", *_numbers(up, down), "")
    return table


def _numbers(*numbers: int) -> tuple[str, ...]:
    return tuple(f"{number:,}" for number in numbers)


def _beside_hosts(report: RunReport) -> str:
    """Compare with hosts alone, which send nothing here: their bytes follow from the graph."""
    ours = max(1, report.bytes_up + report.bytes_down)
    host = report.host_bytes_up + report.host_bytes_down
    partial = report.host_partial_bytes_up + report.host_partial_bytes_down
    return (
        f"Hosts alone, predicted for {_frames(report.host_mtu)}: {HOST.name} takes "
        f"{host / ours:.2f} times the bytes of the switch, {HOST_PARTIAL.name} "
        f"{partial / ours:.2f} times."
    )


def _frames(mtu: int | str) -> str:
    if mtu == FRAGMENT:
        return "a fragment of a row in each frame"
    return f"rows packed into frames up to an MTU of {mtu:,}"


def _queues(report: RunReport) -> str:
    longest = max((length for length, count in enumerate(report.port_queue) if count), default=0)
    more = " or more" if longest == len(report.port_queue) - 1 else ""
    text = f"Queues: {report.marked:,} packets marked; the longest held {longest}{more} packets"
    if not report.background_bytes:
        return f"{text}."
    rate = report.background_bytes * 8 / report.seconds / 1e6
    return f"{text}; background TCP received {rate:.1f} Mbit/s in all."
