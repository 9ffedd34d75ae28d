"""`switchgnn launch`: a PyTorch program on every worker, its all-reduces made in the switch."""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import writing
from switchgnn.base.interruptible import end_like_interrupted
from switchgnn.base.machine import size_text
from switchgnn.base.network_file import NETWORK, network_text
from switchgnn.base.options import with_groups
from switchgnn.base.tasks import task_to_json
from switchgnn.commands.shared import options as shared
from switchgnn.commands.shared.console import StepBars, plain_console, progress_bars
from switchgnn.commands.shared.outputs import LogOptions, check_outputs
from switchgnn.controller.target import client_of, served_plan
from switchgnn.host.base.pace import Pace
from switchgnn.host.links.transport import LinkConfig
from switchgnn.host.reduce.connection import CARRIED, VARIABLE, ReduceTask
from switchgnn.host.registry import SWITCH
from switchgnn.jobs.allreduce import write_empty_plan
from switchgnn.jobs.logs import told_aloud
from switchgnn.jobs.runner import NOBODY, NetworkJob, Workers, finished, workspace
from switchgnn.jobs.workers import ChildLines, rank_variables, require_training
from switchgnn.planner import read_manifest
from switchgnn.topologies import Fabric, free_tcp_port
from switchgnn.topologies.child import Child, how_it_ended
from switchgnn.training.data.partition import machines_of

_EXIT_SECONDS = 10.0
# Both outputs of a program go to one pipe.
_MERGED = ("sh", "-c", 'exec "$@" 2>&1', "sh")
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True, kw_only=True)
class LaunchOptions:
    """The options of `switchgnn launch`."""

    workers: int = shared.workers_option(4)
    workers_per_machine: int = shared.per_machine_option()
    network: shared.JobNetworkOptions
    timeout: float = shared.timeout_option(60.0)
    logs: LogOptions

    def job(self) -> NetworkJob:
        """Return the network that is asked for."""
        ports = machines_of(self.workers, self.workers_per_machine)
        return NetworkJob(**self.network.job_fields(ports))

    @property
    def pace(self) -> Pace:
        """The bounds of the all-reduces."""
        return self.network.pace(self.timeout)


@app.command(
    # What follows the program is the program's.
    context_settings={"allow_interspersed_args": False},
    epilog="Example: switchgnn launch --workers 4 train.py --epochs 3",
)
@with_groups
def launch(
    asked: LaunchOptions,
    program: Annotated[
        Path, typer.Argument(metavar="PROGRAM", help="A Python program to run.", show_default=False)
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="...", help="The arguments of the program.", show_default=False),
    ] = None,
) -> None:
    """Run a PyTorch program on every worker, its all-reduces made in the switch.

    This starts a switch, and a process for each worker with torchrun's
    variables. After `dist.init_process_group("switchgnn")`, or with another
    backend and SwitchHook, gradients are added up in the switch. Programs that
    join a job use this network, whatever file they name. Each line of output
    begins with its worker's number; the last line reports what the switch
    carried. The exit code is 0 if all workers end with 0, and 2 if one does not;
    the others are then stopped.
    """
    if not program.is_file():
        raise SwitchGNNError(f"There is no program {program}: name a file in Python.")
    check_outputs({"--log-dir": asked.logs.log_dir})
    job = asked.job()
    choice = job.choose_fabric()
    require_training("launch", "torch")
    command = (*_MERGED, sys.executable, "-u", str(program.absolute()), *(words or ()))
    end_like_interrupted()
    with (
        progress_bars(plain_console(stderr=True)) as progress,
        told_aloud(verbose=asked.logs.verbose),
        workspace(StepBars(progress), None, asked.logs.log_dir, NOBODY) as work,
    ):

        def run(fabric: Fabric, links: list[LinkConfig]) -> list[float]:
            progress.stop()
            task = work.folder / "reduce.json"
            with writing(task):
                each = asked.workers_per_machine
                reduce = ReduceTask(tuple(links), asked.pace, work.folder, each)
                task.write_text(task_to_json(reduce))
            network = work.folder / "launched.toml"
            network.write_text(network_text(fabric.describe(each)))
            variables = {VARIABLE: str(task), NETWORK: str(network)}
            _follow(_children(fabric, command, variables, each))
            files = list(work.folder.glob(f"*{CARRIED}"))
            lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
            return [sum(each) / len(files) for each in zip(*lines, strict=True)]

        workers = Workers(
            program=job.program,
            parts=write_empty_plan(job, work.folder / "plan"),
            transport=SWITCH.name,
            run=run,
            shows_slots=False,
        )
        with finished(job, choice, workers, work) as done:
            carried = done.result
            network = done.fabric.describe()
            # Workers that join a job install its plan.
            with client_of(network.in_order[0], primary=False) as client:
                served = served_plan(client, network.job)
            joined = served != read_manifest(work.folder / "plan").number
    if carried or not joined:
        typer.echo(_carried_line(carried), err=True)


def _carried_line(carried: Sequence[float]) -> str:
    if not carried:
        return (
            "The switch carried nothing, as no process group has its backend: begin with "
            'torch.distributed.init_process_group("switchgnn"), or register SwitchHook.'
        )
    arrays, size, seconds = carried
    return (
        f"The switch carried {arrays:,.0f} all-reduce{'' if arrays == 1 else 's'}: "
        f"{size_text(size)} on each worker's link, both ways, in {seconds:,.2f} s."
    )


def _children(
    fabric: Fabric, command: Sequence[str], variables: Mapping[str, str], each: int
) -> list[Child]:
    meeting = {
        "MASTER_ADDR": fabric.topology.station(0).ip if fabric.workers_have_hosts else "127.0.0.1",
        "MASTER_PORT": str(free_tcp_port()),
        **variables,
    }
    return [
        fabric.worker_child(
            *(worker, command),
            environment={**meeting, **rank_variables(fabric, worker, each)},
            per_port=each,
        )
        for worker in range(fabric.topology.workers * each)
    ]


def _follow(children: Sequence[Child]) -> None:
    with ExitStack() as stack:
        for child in children:
            stack.enter_context(child).stdin.close()
        output = stack.enter_context(ChildLines(children))
        while output.left:
            for rank, lines, at_end in output.read():
                for line in lines:
                    sys.stdout.buffer.write(b"[%d] %s\n" % (rank, line))
                sys.stdout.buffer.flush()
                code = children[rank].wait(_EXIT_SECONDS) if at_end else 0
                if code != 0:
                    raise SwitchGNNError(
                        f"Worker {rank} {how_it_ended(code)}; what it printed last says why."
                    )
