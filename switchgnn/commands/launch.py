# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn launch`: a PyTorch program on every worker, its all-reduces made in the switch."""

import json
import os
import selectors
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.full_disk import writing
from switchgnn.base.interruptible import end_like_interrupted
from switchgnn.base.machine import size_text
from switchgnn.base.options import NETWORK, option, with_groups
from switchgnn.commands.allreduce.job import write_empty_plan
from switchgnn.commands.shared.console import (
    StepBars,
    plain_console,
    progress_bars,
)
from switchgnn.commands.shared.observer import NOBODY
from switchgnn.commands.shared.options import (
    FaultsOption,
    LimitOptions,
    SiteOptions,
    workers_option,
)
from switchgnn.commands.shared.outputs import LogOptions, Recordings, check_outputs, told_aloud
from switchgnn.commands.shared.runner import (
    LinkSettings,
    NetworkJob,
    Workers,
    finished,
    rank_variables,
    workplace,
)
from switchgnn.commands.shared.training import require_training
from switchgnn.host.innetwork.exchange import plan_id
from switchgnn.host.pace import Pace
from switchgnn.host.reduce.connection import CARRIED, VARIABLE, ReduceTask
from switchgnn.host.registry import SWITCH
from switchgnn.p4src import load_program
from switchgnn.planner.plan.files import read_manifest
from switchgnn.topologies import Fabric, free_tcp_port
from switchgnn.topologies.child import Child, how_it_ended

_MOST_BYTES = 1 << 16
_EXIT_SECONDS = 10.0
# Both outputs of a program go to one pipe.
_MERGED = ("sh", "-c", 'exec "$@" 2>&1', "sh")


@dataclass(frozen=True, kw_only=True)
class AskedLaunch:
    """The options of `switchgnn launch`."""

    workers: int = workers_option(4)
    site: SiteOptions
    limits: LimitOptions
    patience: float = option(
        NETWORK, "SECONDS", "Without progress, until a worker gives up.", default=60.0, min=0.1
    )
    faults: FaultsOption = ""
    logs: LogOptions

    def job(self) -> NetworkJob:
        """Return the network that is asked for."""
        return NetworkJob(**self.site.network_of(self.workers, self.limits, self.faults))

    @property
    def pace(self) -> Pace:
        """The bounds of the all-reduces."""
        window = self.limits.window or self.limits.usual(self.site).window
        return Pace(window=window, patience=self.patience)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(
    # What follows the program is the program's.
    context_settings={"allow_interspersed_args": False},
    epilog="Example: switchgnn launch --workers 4 train.py --epochs 3",
)
@with_groups
def launch(
    asked: AskedLaunch,
    program: Annotated[
        Path, typer.Argument(metavar="PROGRAM", help="In Python.", show_default=False)
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="...", help="Its arguments.", show_default=False),
    ] = None,
) -> None:
    """Run a PyTorch program on every worker, its all-reduces made in the switch.

    Starts a switch and a process for each worker, with the variables of
    torchrun. After `dist.init_process_group("switchgnn")`, or with another
    backend and SwitchHook, gradients are added up in the switch. What the
    workers print follows their number. Exit code 0 when all end with it, 2 when
    one does not; the others are then stopped. The last line reports what the
    switch carried.
    """
    if not program.is_file():
        raise SwitchGNNError(f"There is no program {program}: name a file in Python.")
    check_outputs({"--log-dir": asked.logs.log_dir})
    job = asked.job()
    choice = job.choose_site()
    require_training("launch", "torch")
    command = (*_MERGED, sys.executable, "-u", str(program.absolute()), *(words or ()))
    end_like_interrupted()
    with (
        progress_bars(plain_console(stderr=True)) as progress,
        told_aloud(verbose=asked.logs.verbose),
        workplace(StepBars(progress), None, asked.logs.log_dir, NOBODY) as work,
    ):

        def run(fabric: Fabric, tasks: list[dict[str, Any]]) -> list[float]:
            progress.stop()
            _follow(_children(fabric, command, _write_task(tasks, asked.pace, work.folder)))
            files = list(work.folder.glob(f"*{CARRIED}"))
            lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
            return [sum(each) / len(files) for each in zip(*lines, strict=True)]

        workers = Workers(
            program=load_program(),
            parts=write_empty_plan(job, work.folder / "plan"),
            transport=SWITCH.name,
            task=dict,
            run=run,
            recordings=Recordings(),
            links=LinkSettings(),
            scheduled=False,
            shows_slots=False,
        )
        with finished(job, choice, workers, work) as done:
            carried = done.result
    typer.echo(_carried_line(carried), err=True)


def _carried_line(carried: Sequence[float]) -> str:
    """Return what the switch carried, of a worker on average."""
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


def _write_task(tasks: Sequence[dict[str, Any]], pace: Pace, folder: Path) -> Path:
    """Write the file from which the processes learn their ways to the switch."""
    manifest = read_manifest(folder / "plan")
    task = ReduceTask(
        session=tasks[0]["session"],
        plan_id=plan_id(manifest),
        links=tuple(task["link"] for task in tasks),
        addresses=tuple(task["addresses"] for task in tasks),
        faults=tasks[0]["faults"],
        pace=pace,
        carried=folder,
    )
    path = folder / "reduce.json"
    with writing(path):
        path.write_text(task.to_json())
    return path


def _children(fabric: Fabric, command: Sequence[str], task: Path) -> list[Child]:
    """Return the processes of all ranks, which meet at worker 0."""
    meeting = {
        "MASTER_ADDR": fabric.site.station(0).ip if fabric.workers_have_hosts else "127.0.0.1",
        "MASTER_PORT": str(free_tcp_port()),
        VARIABLE: str(task),
    }
    return [
        fabric.worker_child(
            worker, command, environment={**meeting, **rank_variables(fabric, worker)}
        )
        for worker in range(fabric.site.workers)
    ]


def _follow(children: Sequence[Child]) -> None:
    """Print what the processes print until all have ended.

    Raises:
        SwitchGNNError: one has ended with another code than 0.
    """
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for rank, child in enumerate(children):
            stack.enter_context(child).stdin.close()
            selector.register(child.stdout, selectors.EVENT_READ, (rank, _Lines(rank)))
        while selector.get_map():
            for key, _ in selector.select():
                rank, lines = key.data
                new = os.read(key.fd, _MOST_BYTES)
                lines.print(new)
                if new:
                    continue
                selector.unregister(key.fileobj)
                code = children[rank].wait(_EXIT_SECONDS)
                if code != 0:
                    raise SwitchGNNError(
                        f"Worker {rank} {how_it_ended(code)}; what it printed last says why."
                    )


class _Lines:
    """Prints the output of one process by whole lines, after its rank."""

    def __init__(self, rank: int) -> None:
        self._prefix = f"[{rank}] ".encode()
        self._rest = b""

    def print(self, new: bytes) -> None:
        """Print the lines that are complete with some new bytes; at the end, without, the rest."""
        *lines, self._rest = (self._rest + new).split(b"\n")
        if not new and self._rest:
            lines.append(self._rest)
        for line in lines:
            sys.stdout.buffer.write(self._prefix + line + b"\n")
        sys.stdout.buffer.flush()
