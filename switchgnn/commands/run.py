"""`switchgnn run`: everything from a graph to verified sums."""

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.interruptible import end_like_interrupted, wait_for_interrupt
from switchgnn.base.machine import Amount, against_bound
from switchgnn.base.network_file import MOST_WORKERS
from switchgnn.base.options import CONGESTION, DATA, NETWORK, shared_fields, with_groups
from switchgnn.commands.shared import console as display
from switchgnn.commands.shared import options as shared
from switchgnn.commands.shared.config_file import ConfigOption
from switchgnn.commands.shared.outputs import OutputOptions, check_outputs
from switchgnn.host.base.operations import Operation
from switchgnn.host.direct.framing import FRAGMENT, Framing
from switchgnn.host.registry import HOST, HOST_PARTIAL
from switchgnn.host.wire.header import LAST_ROUND, WIDEST
from switchgnn.host.worker import HostKind
from switchgnn.jobs.logs import told_aloud
from switchgnn.jobs.run import RunOptions, RunReport, run_job
from switchgnn.jobs.runner import NETWORK_FILE
from switchgnn.jobs.workers import command_forkserver, too_many_releases
from switchgnn.p4src import program_of
from switchgnn.planner.base.lanes import AUTO
from switchgnn.topologies import Fabric

_WRONG = 1
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def print_report(console: Console, report: RunReport) -> None:
    """Print the report of a run, for people."""

    def say(line: str | Text) -> None:
        console.print(line, soft_wrap=True, highlight=False)

    say(
        f"{report.graph}: {display.graph_text(report.vertices, report.edges, report.send or '')}, "
        f"{Amount(report.boundary_vertices):boundary vertex}; {Amount(report.workers):worker}, "
        f"{Amount(report.blocks):block} of at most {report.slots:,} slots, "
        f"frames of up to {report.lanes} numbers; "
        f"{Amount(report.rounds):round} of {Amount(report.features):feature}"
    )
    say(f"Ran on: {report.ran_on()}")
    say(f"Plan: {report.strategies}.")
    for why in report.why:
        say(f"  {why}")
    console.print(_worker_table(report))
    say(_beside_hosts(report))
    if report.leaf_spine is not None:
        console.print(display.leaf_spine_table(report.leaf_spine))
    say(
        f"Switch{'' if report.leaf_spine is None else 'es'}: {Amount(report.passes):pass} "
        f"for {Amount(report.contributions):contribution} "
        f"({report.passes / max(1, report.contributions):.2f} passes each), "
        f"{Amount(report.table_entries):table entry}; "
        f"plan {report.plan_seconds:.2f} s, install {report.install_seconds:.2f} s, "
        f"exchange {report.seconds:.2f} s"
    )
    if report.marked or report.background_bytes:
        say(_queues(report))
    if report.faults_injected:
        say(display.counted("Faults injected", report.faults_injected))
        say(display.counted("Repairs", report.repairs))
    if suspicion := too_many_releases([worker.releases for worker in report.per_worker]):
        say(suspicion)
    if report.pcap:
        say(display.captured_line(list(map(Path, report.pcap))))
    error = f"float off by {against_bound(report.max_error, report.error_bound)}."
    if report.exact:
        right = (f"Every {report.operation} equals the reference", "bold green")
        fixed = f": fixed point to the bit, {error}" if report.operation == "sum" else "."
        say(Text.assemble(right, fixed))
    else:
        wrong = (f"{Amount(report.wrong_sums):sum} differed from the reference", "bold red")
        say(Text.assemble(wrong, f"; {error}"))


def _worker_table(report: RunReport) -> Table:
    names = ("worker", "sent", "sums", "bytes up", "bytes down", "s")
    table = display.numbers_table(f"Bytes on the wire, counted by {report.wires}", numbers=names)
    for each in report.per_worker:
        counts = _numbers(each.features_sent, each.sums_received, each.bytes_up, each.bytes_down)
        table.add_row(str(each.worker), *counts, f"{each.seconds:.2f}")
    table.add_section()
    sent = sum(worker.features_sent for worker in report.per_worker)
    sums = sum(worker.sums_received for worker in report.per_worker)
    counts = _numbers(sent, sums, report.bytes_up, report.bytes_down)
    table.add_row("all", *counts, f"{report.seconds:.2f}")
    table.add_section()
    host = _numbers(report.host_bytes_up, report.host_bytes_down)
    table.add_row(HOST.name, "", "", *host, "")
    partial = _numbers(report.host_partial_bytes_up, report.host_partial_bytes_down)
    table.add_row(HOST_PARTIAL.name, "", "", *partial, "")
    return table


def _numbers(*numbers: int) -> tuple[str, ...]:
    return tuple(f"{number:,}" for number in numbers)


def _beside_hosts(report: RunReport) -> str:
    ours = max(1, report.bytes_up + report.bytes_down)
    host = report.host_bytes_up + report.host_bytes_down
    partial = report.host_partial_bytes_up + report.host_partial_bytes_down
    frames = "a fragment of a row in each frame"
    if report.host_mtu != FRAGMENT:
        frames = f"rows packed into frames up to an MTU of {report.host_mtu:,}"
    return (
        f"Hosts alone, predicted for {frames}: {HOST.name} takes "
        f"{host / ours:.2f} times the bytes of the switch, {HOST_PARTIAL.name} "
        f"{partial / ours:.2f} times."
    )


def _queues(report: RunReport) -> str:
    longest = max((length for length, count in enumerate(report.port_queue) if count), default=0)
    more = " or more" if longest == len(report.port_queue) - 1 else ""
    text = f"Queues: {report.marked:,} packets marked; the longest held {longest}{more} packets"
    if not report.background_bytes:
        return f"{text}."
    rate = report.background_bytes * 8 / report.seconds / 1e6
    return f"{text}; background TCP received {rate:.1f} Mbit/s in all."


@dataclass(frozen=True, kw_only=True)
class RunCommandOptions:
    """The options of `switchgnn run`."""

    graph: str = DATA.option(
        "GRAPH", "digits, karate, random:VERTICES:EDGES:SEED, or a path.", default="digits"
    )
    ignore_weights: bool = shared.ignore_weights_option()
    workers: int = shared.workers_option(4)
    features: int | None = DATA.option(
        "N", "Use features of N numbers.", min=1, max=WIDEST, shown="the graph's own, or 32"
    )
    rounds: int = DATA.option("N", "Do N exchanges.", default=3, min=1, max=LAST_ROUND)
    operation: Operation = DATA.option(
        None, "Exchange sums, maxima or minima of neighbours.", default=Operation.SUM
    )
    hosts: HostKind = NETWORK.option(
        None,
        "Run workers as native code, or (for small graphs) as 200 lines of Scapy.",
        default=HostKind.NATIVE,
    )
    seed: int = shared.seed_option()
    strategies: shared.PlanningOptions
    network: shared.JobNetworkOptions
    mtu: str = shared.mtu_option(
        NETWORK,
        "Compare with hosts that pack rows into IP packets of up to this size; or "
        f"{FRAGMENT}: a frame of 188 bytes for each fragment of a row.",
    )
    timeout: float = shared.timeout_option(20.0)
    grpc_port: int = NETWORK.option(
        "PORT",
        "Serve the switch's P4Runtime at this TCP port, open to all users; 0: at a socket that "
        "only you can reach.",
        default=0,
        min=0,
        max=65535,
    )
    tls: Path | None = NETWORK.option(
        "FOLDER",
        "Use TLS with ca.pem, switch.pem, switch-key.pem, controller.pem and controller-key.pem in "
        "this folder.",
    )
    keep: bool = NETWORK.flag(
        "Keep the switch running afterwards until Ctrl-C, and write a network file for other "
        "jobs; with --on: leave the job on the switch."
    )
    spare_ports: int = NETWORK.option(
        "N", "With --keep: give the switch N more ports, for other jobs.", default=0, min=0
    )
    ecn_threshold: int | None = CONGESTION.option(
        "N", "Mark packets that find N or more packets in a queue.", min=0, shown="half of a queue"
    )
    background: int = CONGESTION.option(
        "N",
        "Run N TCP flows from each worker to the next (needs --fabric mininet).",
        default=0,
        min=0,
    )
    output: OutputOptions

    def options(self) -> RunOptions:
        """Return the run that is asked for."""
        strategies = self._strategies()
        self._check_ports()
        busy = self.background > 0
        job = self.network.job_fields(self.workers, busy=busy)
        if self.ecn_threshold is not None:
            job |= {"ecn_threshold": self.ecn_threshold, "queue": 0}
        if job.get("on"):
            job["on"] = replace(job["on"], stays=self.keep)
        job["slots"] = strategies.slots or program_of(job["target"]).slots
        return RunOptions(
            **(shared_fields(self, RunOptions) | job),
            pace=self.network.pace(self.timeout, busy=busy),
            request=strategies.request(job["leaf_spine"]),
            pcap=self.output.pcap,
            metrics=shared.find_metrics(self.output.metrics, self.workers),
            framing=Framing.parse(self.mtu),
        )

    def _check_ports(self) -> None:
        own = {"--grpc-port": self.grpc_port, "--tls": self.tls, "--spare-ports": self.spare_ports}
        if self.network.on is not None:
            shared.refuse_with_on(own)
        if not self.spare_ports:
            return
        if not self.keep or self.network.leaves_and_spines() is not None:
            raise SwitchGNNError(
                "--spare-ports is for other jobs on one switch: add --keep, and leave out leaves "
                "and spines."
            )
        if self.workers + self.spare_ports > MOST_WORKERS:
            raise SwitchGNNError(
                f"A network file has at most {MOST_WORKERS} workers: give fewer --spare-ports than "
                f"{self.spare_ports}."
            )

    def _strategies(self) -> shared.PlanningOptions:
        if self.hosts is HostKind.NATIVE:
            return self.strategies
        rows, pools = self.strategies.rows or AUTO, self.strategies.pools or 1
        if self.operation is not Operation.SUM or rows not in (AUTO, "1") or pools > 1:
            raise SwitchGNNError(
                "--hosts scapy exchanges sums, one row in a frame and one block at a time: leave "
                "out --operation, --rows and --pools."
            )
        return replace(self.strategies, rows="1", pools=1)


@app.command(
    epilog="Example: switchgnn run --graph karate --workers 3 --rounds 2 --fabric loopback"
)
@with_groups
def run(asked: RunCommandOptions, config: ConfigOption = None) -> None:
    """Exchange features through the switch and check every sum.

    This partitions the graph over the workers, plans blocks and their order,
    starts a switch with the P4 program, installs the tables over P4Runtime and
    sends every boundary vertex's feature through it, block by block. The exit
    code is 0 if every sum equals the reference, 1 if one does not, and 2 if the
    run failed.
    """
    output = asked.output
    check_outputs({"--log-dir": output.logs.log_dir})
    output.page.check()
    options = asked.options()
    console, waits = display.plain_console(stderr=True), asked.keep and options.on is None
    if asked.grpc_port and asked.tls is None:
        console.print(
            f"Warning: every user of this machine may write to the switch at port "
            f"{asked.grpc_port}: leave --grpc-port out, or give certificates (--tls).",
            soft_wrap=True,
        )
    end_like_interrupted()
    with (
        command_forkserver() as forkserver,
        output.page.looked_at(f"run {asked.graph} over {Amount(asked.workers):worker}") as observer,
        display.progress_bars(console) as progress,
        told_aloud(verbose=output.logs.verbose),
    ):
        steps = display.StepBars(progress)

        def hold(running: Fabric, report: RunReport) -> None:
            steps.finish()
            progress.stop()
            _show(report, as_json=output.as_json)
            switches = running.topology.switches
            addresses = ", ".join(switch.grpc_address for switch in switches)
            who = "The switch serves" if len(switches) == 1 else "The switches serve"
            with suppress(KeyboardInterrupt):
                if len(switches) == 1:
                    console.print(_for_other_jobs(asked, running), soft_wrap=True, markup=False)
                console.print(f"{who} P4Runtime on {addresses}; Ctrl-C ends it.", soft_wrap=True)
                wait_for_interrupt()

        report = run_job(
            options,
            steps,
            hold=hold if waits else None,
            forkserver=forkserver,
            log_dir=output.logs.log_dir,
            observer=observer,
        )
        steps.finish()
    if not waits:
        _show(report, as_json=output.as_json)
    if asked.keep and (on := options.on) is not None:
        name = on.network.job
        console.print(
            f"Job {name} stays on the switch: `switchgnn controller remove {name} --network "
            f"{on.file}` removes it.",
            soft_wrap=True,
        )
    if not report.exact:
        raise typer.Exit(_WRONG)


def _for_other_jobs(asked: RunCommandOptions, running: Fabric) -> str:
    first, last, job = 1, asked.workers, ""
    if asked.spare_ports:
        first, last, job = last + 1, last + asked.spare_ports, " --job b"
    return (
        f"For another job: switchgnn run --on {running.folder / NETWORK_FILE} --ports "
        f"{first}-{last}{job} --workers {last - first + 1}"
    )


def _show(report: RunReport, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(report.to_dict()))
    else:
        print_report(display.plain_console(), report)
