# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn allreduce`: tensors through the switch, checked, and compared with Gloo."""

import json
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.interruptible import end_like_interrupted
from switchgnn.base.options import DATA, NETWORK, OUTPUT, option, parse_bytes, with_groups
from switchgnn.commands.allreduce.job import (
    NUMBER_BYTES,
    ReduceOptions,
    ReduceReport,
    run_allreduce,
)
from switchgnn.commands.shared.config_file import ConfigOption
from switchgnn.commands.shared.console import (
    StepBars,
    counted,
    plain_console,
    progress_bars,
)
from switchgnn.commands.shared.options import (
    FaultsOption,
    LimitOptions,
    SiteOptions,
    json_option,
    seed_option,
    workers_option,
)
from switchgnn.commands.shared.outputs import LogOptions, check_outputs, told_aloud
from switchgnn.commands.shared.workers import fork_nursery
from switchgnn.host.links.faults import Faults
from switchgnn.host.pace import Pace

_WRONG = 1


@dataclass(frozen=True, kw_only=True)
class AskedReduce:
    """The options of `switchgnn allreduce`."""

    workers: int = workers_option(4)
    size: str = option(DATA, "SIZE", "Of a tensor, as 4MB.", "--bytes", default="4MB")
    rounds: int = option(
        DATA, "N", "All-reduces of integers, and then as many of floats.", default=3, min=1
    )
    words: int = option(DATA, "N", "int32 of each float; 1 is coarse.", default=2, min=1, max=2)
    seed: int = seed_option("For the numbers.")
    site: SiteOptions
    limits: LimitOptions
    timeout: float = option(
        NETWORK, "SECONDS", "Without progress, until a worker gives up.", default=20.0, min=0.1
    )
    gloo: bool = option(
        NETWORK,
        None,
        "Compare with Gloo, where its packets go over the same links.",
        "--gloo/--no-gloo",
        default=True,
    )
    faults: FaultsOption = ""
    pcap: Path | None = option(OUTPUT, "FOLDER", "For pcap files of all packets, one per link.")
    logs: LogOptions
    as_json: bool = json_option()

    def options(self) -> ReduceOptions:
        """Return the job that is asked for."""
        limits = self.limits.usual(self.site)
        size = parse_bytes("--bytes", self.size)
        if size < NUMBER_BYTES or size % NUMBER_BYTES:
            raise SwitchGNNError(
                f"A tensor of {size:,} bytes has no whole number of {NUMBER_BYTES} bytes each: "
                "give --bytes as a multiple of 4."
            )
        Faults.parse(self.faults)
        return ReduceOptions(
            **self.site.network_of(self.workers, self.limits, self.faults),
            elements=size // NUMBER_BYTES,
            rounds=self.rounds,
            seed=self.seed,
            words=self.words,
            gloo=self.gloo,
            pace=Pace(window=self.limits.window or limits.window, timeout=self.timeout),
            pcap=self.pcap,
        )


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: switchgnn allreduce --workers 4 --bytes 1MB --fabric loopback")
@with_groups
def allreduce(asked: AskedReduce, config: ConfigOption = None) -> None:
    """Sum tensors over all workers in the switch, and check every number.

    Starts a switch with the P4 program and a process for each worker. They
    reduce tensors of integers, which must equal NumPy's sums to the bit, and of
    floats, whose errors have a bound; then the same tensors with Gloo's ring.
    Exit code 0 when all sums are right, 1 when one is not, 2 when it could not
    be done.
    """
    check_outputs({"--log-dir": asked.logs.log_dir})
    options = asked.options()
    end_like_interrupted()
    with (
        fork_nursery() as nursery,
        progress_bars(plain_console(stderr=True)) as progress,
        told_aloud(verbose=asked.logs.verbose),
    ):
        steps = StepBars(progress)
        report = run_allreduce(options, steps, nursery=nursery, log_dir=asked.logs.log_dir)
        steps.finish()
    if asked.as_json:
        typer.echo(json.dumps(report.to_dict()))
    else:
        print_report(plain_console(soft_wrap=True, highlight=False), report)
    if not (report.exact and report.within):
        raise typer.Exit(_WRONG)


def print_report(console: Console, report: ReduceReport) -> None:
    """Print the report, for people."""
    size = report.elements * NUMBER_BYTES
    console.print(
        f"All-reduce of {report.elements:,} numbers ({size:,} bytes) over {report.workers} workers"
    )
    console.print(f"Ran on: {report.reason}.")
    by_switch, by_ring = report.wires
    ratio = report.ring_bytes_per_link / max(1, report.bytes_per_link)
    console.print(
        f"Bytes on a worker's link: {report.bytes_per_link:,} (counted by {by_switch}); a ring "
        f"takes {report.ring_bytes_per_link:,} ({by_ring}), {ratio:.2f} times as many."
    )
    console.print(f"Time: {report.seconds:.4f} s; {_beside_gloo(report)}")
    if report.faults_injected:
        console.print(counted("Faults injected", report.faults_injected))
        console.print(f"Fragments sent again: {report.counters['resent']:,}.")
    integers = "equal NumPy's to the bit" if report.exact else "DIFFER from NumPy's"
    floats = "within" if report.within else "NOT WITHIN"
    console.print(
        f"Sums of integers {integers}; those of floats are off by at most "
        f"{report.max_error:.3g}, {floats} the bound {report.error_bound:.3g}."
    )


def _beside_gloo(report: ReduceReport) -> str:
    if report.gloo_seconds is None:
        return "Gloo was not asked, or does not use these links."
    return (
        f"Gloo takes {report.gloo_seconds:.4f} s, "
        f"{report.gloo_seconds / report.seconds:.2f} times as long."
    )
