# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Joins a job: rank, number of workers and meeting point are what torchrun says."""

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from switchgnn.base.described import DescribedNetwork, interfaces, read_network
from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.metrics import check_installed
from switchgnn.controller.install import Share, install_each
from switchgnn.controller.target import client_of, parts_for
from switchgnn.host.metrics import serving_metrics
from switchgnn.host.mixed import open_switch
from switchgnn.host.pace import Pace
from switchgnn.host.transport import Transport, WorkerEnd
from switchgnn.host.wire.addresses import Addresses
from switchgnn.p4src import load_program
from switchgnn.training.errors import JobError
from switchgnn.training.gradients import collective, patience_of, share_cores, together
from switchgnn.training.job import PLAN_FOLDER, Job, job_schedule, read_job, read_part
from switchgnn.training.joined import Worker
from switchgnn.training.partition import Partition
from switchgnn.training.sums import RemoteSum
from switchgnn.training.worker import view_of


def open_session(plan: Path, network: DescribedNetwork, *, election_id: int = 1) -> int:
    """Bring all switches of a network to a plan, in a new session.

    Switches that serve the plan already only get the session.

    Args:
        plan: its folder.
        network: where the switches are.
        election_id: of all controllers the one with the highest is obeyed.

    Returns:
        The number of the session, for the workers.

    Raises:
        PlannerError: no plan, or a damaged one.
        ControllerError: a switch is not there, obeys another controller, or cannot take it.
    """
    parts = parts_for(plan, network)
    with ExitStack() as stack:
        clients = [client_of(switch, election_id=election_id) for switch in network.in_order]
        for client in clients:
            stack.callback(client.close)
        shares = [Share(*part, client) for part, client in zip(parts, clients, strict=True)]
        return install_each(shares, program=load_program(), new_session=True).session


# Seconds for which workers may be apart: one may read a large part, or write a checkpoint.
_SKEW = 180.0


@dataclass(frozen=True)
class Seat:
    """What a worker that takes part in a job was given.

    Attributes:
        job: what all workers share.
        folder: of the job.
        partition: the worker's part of the graph.
        transport: carries the sums over remote neighbours.
        first: the rank of worker 0.
        session: the number of this session on the switches.
        metrics: ``HOST:PORT`` where the network file wants its metrics; empty: nowhere.
    """

    job: Job
    folder: Path
    partition: Partition
    transport: Transport
    first: int
    session: int
    metrics: str = ""


def _seen(seat: Seat, remote: RemoteSum) -> AbstractContextManager[None]:
    return serving_metrics(seat.metrics, view_of(seat.partition.worker, seat.transport, remote))


@contextmanager
def join(
    job: str | Path,
    *,
    network: str | Path,
    session: int | None = None,
    pace: Pace | None = None,
    faults: str = "",
    seed: int = 0,
) -> Iterator[Worker]:
    """Take part in a job.

    Which worker this process is, the network file says: the only one whose interface, with its
    MAC, is on this machine. Where none or several are, the number is the process's rank.

    Worker 0 opens a new session on the switches, so its machine must reach their P4Runtime; a
    script that is started anew needs nothing else.

    Args:
        job: its folder, which ``write_job`` or `switchgnn plan --parts` wrote.
        network: the network file.
        session: that of an install that was made already; None: worker 0 opens one.
        pace: the limits of sending and waiting.
        faults: what goes wrong on this worker's link on purpose, as `--faults` takes it.
        seed: of dropout, the same on all workers.

    Where the network file says so, the worker serves metrics meanwhile.

    Yields:
        The worker.

    Raises:
        JobError: no such job, or it is for another number of workers, or for leaves and spines
            that the network does not have; or RANK and WORLD_SIZE are missing; or two processes
            are the same worker.
        NetworkError: the network file cannot be used.
        SwitchGNNError: whatever stops a worker meanwhile.
    """
    taking = take_seat(job, network=network, session=session, pace=pace, faults=faults, seed=seed)
    with taking as seat, RemoteSum(seat.transport) as remote, _seen(seat, remote):
        yield Worker(
            seat.job,
            seat.folder,
            seat.partition,
            remote,
            first=seat.first,
            session=seat.session,
            seed=seed,
        )


@contextmanager
def take_seat(
    job: str | Path,
    *,
    network: str | Path,
    session: int | None = None,
    pace: Pace | None = None,
    faults: str = "",
    seed: int = 0,
) -> Iterator[Seat]:
    """Take part in a job, as :func:`join` does, and leave the sums to the caller.

    Args:
        job: its folder.
        network: the network file.
        session: that of an install that was made already, or None.
        pace: the limits of sending and waiting.
        faults: what goes wrong on this worker's link on purpose.
        seed: of what goes wrong there.

    Yields:
        What a worker is made of.

    Raises:
        SwitchGNNError: as :func:`join`.
    """
    folder, pace = Path(job), pace or Pace(skew=_SKEW)
    facts, described = read_job(folder), read_network(Path(network))
    rank, size = _place()
    _check(facts, described, size, folder)
    number = _number(described, rank)
    metrics = described.workers[number].metrics
    if metrics:
        check_installed()
    with _together(described.workers[number].gloo, size, pace, number):
        first = _meet(number, size)
        if facts.why and number == 0:
            sys.stderr.write(f"{facts.why}\n")
        partition = read_part(folder, facts, number)
        agreed = _agreed(session, folder, described, number=number, size=size, first=first)
        end = replace(
            _end(partition, described, folder, agreed, pace=pace, faults=faults, seed=seed),
            schedule=job_schedule(folder, facts, number),
        )
        with open_switch(end) as transport:
            yield Seat(facts, folder, partition, transport, first, agreed, metrics)
            transport.close()


def _place() -> tuple[int, int]:
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError) as error:
        raise JobError(
            "RANK and WORLD_SIZE do not say which worker this is: start the script with torchrun, "
            "as torchrun --nnodes 4 --nproc-per-node 1 ... script.py."
        ) from error


def _number(network: DescribedNetwork, rank: int) -> int:
    here = {(each.name, each.mac) for each in interfaces()}
    own = [
        number
        for number, worker in enumerate(network.workers)
        if (worker.interface, worker.mac.lower()) in here
    ]
    return own[0] if len(own) == 1 else rank


def _meet(number: int, size: int) -> int:
    """Exchange worker numbers and cores, and limit threads; return the rank of worker 0."""
    if size == 1:
        return 0
    mine = torch.tensor([number, _cores()])
    found = [torch.zeros_like(mine) for _ in range(size)]
    with collective():
        dist.all_gather(found, mine)
    numbers = [int(each[0]) for each in found]
    if sorted(numbers) != list(range(size)):
        raise JobError(
            f"The processes are the workers {', '.join(map(str, numbers))}, by rank, and not each "
            "of them once: give all machines the same network file, and each its own interface."
        )
    share_cores(sum(int(each[1]) == int(mine[1]) for each in found))
    return numbers.index(0)


def _cores() -> int:
    """Return a number that processes have in common which run on the same cores."""
    # The same in all network namespaces and containers of a machine.
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    text = f"{boot} {sorted(os.sched_getaffinity(0))}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)


def _check(job: Job, network: DescribedNetwork, size: int, folder: Path) -> None:
    if size != job.workers:
        raise JobError(f"The job {folder} is for {job.workers} workers, and {size} were started.")
    if len(network.workers) != job.workers:
        raise JobError(
            f"The job {folder} is for {job.workers} workers, and the network has "
            f"{len(network.workers)}."
        )
    there = network.leaf_of_worker if network.cables else ()
    if (there, len(network.spines)) != (job.leaf_of_worker, job.spines):
        raise JobError(
            f"The job {folder} is for other leaves and spines than the network has: write it "
            "again for them."
        )


@contextmanager
def _together(interface: str, size: int, pace: Pace, number: int) -> Iterator[None]:
    """Meet the other workers over torch.distributed, unless the script has done so."""
    if size == 1 or dist.is_initialized():
        yield
        return
    if interface:
        # Without it gloo takes the address of the machine's name.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    with ExitStack() as stack:
        with collective():
            store, rank, _ = next(iter(rendezvous("env://", timeout=patience_of(pace))))
            # Where workers meet again, they must not find where they were the last time.
            times = store.add(f"switchgnn/{rank}", 1)
            meeting = dist.PrefixStore(  # type: ignore[attr-defined]
                f"switchgnn/meeting/{times}", store
            )
            stack.enter_context(together(meeting, rank, size, pace, worker=number))
        yield


def _agreed(
    session: int | None,
    folder: Path,
    network: DescribedNetwork,
    *,
    number: int,
    size: int,
    first: int,
) -> int:
    """Return the session: worker 0 opens it, and all hear its number or that there is none."""
    error: SwitchGNNError | None = None
    if session is None and number == 0:
        try:
            session = open_session(folder / PLAN_FOLDER, network)
        except SwitchGNNError as failed:
            error = failed
    agreed = torch.tensor([-1 if session is None else session])
    if size > 1:
        with collective():
            dist.broadcast(agreed, first)
    if error is not None:
        raise error
    if int(agreed) < 0:
        raise JobError("Worker 0 could not open a session on the switches; it says why.")
    return int(agreed)


def _end(
    partition: Partition,
    network: DescribedNetwork,
    folder: Path,
    session: int,
    *,
    pace: Pace,
    faults: str,
    seed: int,
) -> WorkerEnd:
    worker = network.workers[partition.worker]
    switch = network.leaves[network.leaf_of_worker[partition.worker]]
    return WorkerEnd(
        worker=partition.worker,
        workers=partition.workers,
        vertices=len(partition.vertices),
        pace=pace,
        link=worker.opens,
        faults=faults,
        addresses=Addresses(worker.station, switch.station),
        stations=tuple(each.station for each in network.workers),
        plan=folder / PLAN_FOLDER,
        session=session,
        schedule=None,
        sampling=1.0,
        seed=seed,
    )
