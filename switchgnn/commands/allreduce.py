"""`switchgnn allreduce`: tensors through the switch, each sum checked."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import typer
from rich.console import Console

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.interruptible import end_like_interrupted
from switchgnn.base.machine import Amount, against_bound
from switchgnn.base.options import DATA, OUTPUT, parse_bytes, shared_fields, with_groups
from switchgnn.commands.shared import options as shared
from switchgnn.commands.shared.config_file import ConfigOption
from switchgnn.commands.shared.console import StepBars, counted, plain_console, progress_bars
from switchgnn.commands.shared.outputs import LogOptions, check_outputs
from switchgnn.host.links.faults import Faults
from switchgnn.host.reduce import scale
from switchgnn.jobs.allreduce import NUMBER_BYTES, ReduceOptions, ReduceReport, run_allreduce
from switchgnn.jobs.logs import told_aloud
from switchgnn.jobs.workers import command_forkserver

_WRONG = 1
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True, kw_only=True)
class AllReduceCommandOptions:
    """The options of `switchgnn allreduce`."""

    workers: int = shared.workers_option(4)
    size: str = DATA.option("SIZE", "Reduce tensors of this size.", "--bytes", default="4MB")
    rounds: int = DATA.option(
        "N", "Do N all-reduces of integers, then N of floats.", default=3, min=1
    )
    bits: int = DATA.option("BITS", "Send each float in 48 or (coarser) 32 bits.", default=48)
    seed: int = shared.seed_option()
    network: shared.JobNetworkOptions
    timeout: float = shared.timeout_option(20.0)
    pcap: Path | None = OUTPUT.option(
        "FOLDER", "Write all packets to pcap files in this folder, one per link."
    )
    logs: LogOptions
    as_json: bool = shared.json_option()

    def options(self) -> ReduceOptions:
        """Return the job that is asked for."""
        size = parse_bytes("--bytes", self.size)
        if size < NUMBER_BYTES or size % NUMBER_BYTES:
            raise SwitchGNNError(
                f"A tensor of {size:,} bytes has no whole number of {NUMBER_BYTES} bytes each: "
                "give --bytes as a multiple of 4."
            )
        if self.bits not in (scale.PRECISE, scale.COARSE):
            raise SwitchGNNError(f"Floats cannot take {self.bits} bits: give --bits as 48 or 32.")
        Faults.parse(self.network.faults)
        return ReduceOptions(
            **shared_fields(self, ReduceOptions) | self.network.job_fields(self.workers),
            elements=size // NUMBER_BYTES,
            pace=self.network.pace(self.timeout),
        )


@app.command(epilog="Example: switchgnn allreduce --workers 4 --bytes 1MB --fabric loopback")
@with_groups
def allreduce(asked: AllReduceCommandOptions, config: ConfigOption = None) -> None:
    """Sum tensors over all workers in the switch, and check every number.

    This starts a switch with the P4 program and a process for each worker. They
    reduce tensors of integers, which must equal NumPy's sums to the bit, and of
    floats, whose errors have a bound. The exit code is 0 if all sums are right,
    1 if one is not, and 2 if the job failed.
    """
    check_outputs({"--log-dir": asked.logs.log_dir})
    options = asked.options()
    end_like_interrupted()
    with (
        command_forkserver() as forkserver,
        progress_bars(plain_console(stderr=True)) as progress,
        told_aloud(verbose=asked.logs.verbose),
    ):
        steps = StepBars(progress)
        report = run_allreduce(options, steps, forkserver=forkserver, log_dir=asked.logs.log_dir)
        steps.finish()
    if asked.as_json:
        typer.echo(json.dumps(asdict(report)))
    else:
        print_report(plain_console(soft_wrap=True, highlight=False), report)
    if not (report.exact and report.within):
        raise typer.Exit(_WRONG)


def print_report(console: Console, report: ReduceReport) -> None:
    """Print the report, for people."""
    size = report.elements * NUMBER_BYTES
    console.print(
        f"All-reduce of {Amount(report.elements):number} ({size:,} bytes) over "
        f"{Amount(report.workers):worker}"
    )
    console.print(f"Ran on: {report.reason}.")
    ratio = report.ring_bytes_per_link / max(1, report.bytes_per_link)
    console.print(
        f"Bytes on a worker's link: {report.bytes_per_link:,} (counted by {report.wires}); a ring "
        f"takes {report.ring_bytes_per_link:,} without headers, {ratio:.2f} times as many."
    )
    console.print(f"Time: {report.seconds:.4f} s")
    if report.faults_injected:
        console.print(counted("Faults injected", report.faults_injected))
        console.print(f"Fragments sent again: {report.counters['resent']:,}.")
    integers = "equal NumPy's to the bit" if report.exact else "DIFFER from NumPy's"
    floats = against_bound(report.max_error, report.error_bound)
    console.print(f"Sums of integers {integers}; those of floats are off by at most {floats}.")
