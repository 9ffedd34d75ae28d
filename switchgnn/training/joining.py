"""How a process of torchrun joins a job: which worker it is, its part, session and transport.

The built-in trainer and your own scripts join in the same way.
"""

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.network_file import NETWORK, DescribedNetwork, interfaces, read_network
from switchgnn.controller import DesiredStates, JobRequest, Share, install_each
from switchgnn.controller.target import client_of, parts_for
from switchgnn.host import Addresses, Pace
from switchgnn.host.base.compression import NO_COMPRESSION, Compression
from switchgnn.host.links.transport import Transport, WorkerEnd
from switchgnn.host.registry import SWITCH
from switchgnn.p4src import load_program
from switchgnn.training import job as jobs
from switchgnn.training.base.errors import JobError, collective
from switchgnn.training.data.partition import Partition
from switchgnn.training.exchange.gradients import share_cores, timeout_of, together
from switchgnn.training.exchange.machine import Machine, local_processes, opened

# Seconds between workers: one may read a large part, or write a checkpoint.
_SKEW = 180.0


@dataclass(frozen=True)
class Joined:
    """A process that has joined a job as a worker."""

    job: jobs.Job  # what all workers share
    folder: Path  # of the job
    partition: Partition  # the worker's part of the graph
    transport: Transport  # carries the sums over remote neighbours
    first: int  # the rank of worker 0
    session: int  # the number of this session on the switches
    metrics: str = ""  # `HOST:PORT` of its metrics, as in the network file; empty for none
    machine: Machine | None = None  # the processes of its machine, if there are others
    binned: bool = False  # as in ``TransportKind``


def open_session(plan: Path, network: DescribedNetwork) -> int:
    """Install a plan as the network's job in a new session; switches that have it only get that."""
    parts = parts_for(plan, network)
    with ExitStack() as stack:
        clients = [client_of(switch) for switch in network.in_order]
        for client in clients:
            stack.callback(client.close)
        shares = [Share(*part, client) for part, client in zip(parts, clients, strict=True)]
        request = JobRequest(network.job, since=int(time.time()))
        desired = DesiredStates(load_program())
        return install_each(shares, desired, request, new_session=True).session


@contextmanager
def join_job(
    job: str | Path,
    *,
    network: str | Path,
    session: int | None = None,
    pace: Pace | None = None,
    faults: str = "",
    seed: int = 0,
    compression: Compression = NO_COMPRESSION,
    transport: str = SWITCH.name,
) -> Iterator[Joined]:
    """Join a job, and leave the sums to the caller; see ``join`` of `script.py`."""
    folder, pace = Path(job), pace or Pace(skew=_SKEW)
    facts = jobs.read_job(folder)
    described = read_network(Path(os.environ.get(NETWORK) or network))
    rank, size = _rank_and_size()
    _check(facts, described, size, folder)
    kind = jobs.job_transport(folder, facts, transport)
    number = _number(described, rank, facts.workers_per_machine)
    port, follows = divmod(number, facts.workers_per_machine)
    worker = described.workers[port]
    metrics = "" if follows else worker.metrics
    with _together(worker.gloo, size, pace, number):
        first, *_ = ranks = _meet(number, size)
        if facts.why and number == 0:
            sys.stderr.write(f"{facts.why}\n")
        partition = jobs.read_part(folder, facts, number, kind)
        session = _shared_session(session, folder, described, number=number, size=size, first=first)
        leaf = described.leaves[described.leaf_of_worker[port]]
        end = WorkerEnd(
            worker=port,
            workers=len(described.workers),
            vertices=partition.sent_rows,
            pace=pace,
            link=worker.opens,
            faults=faults,
            addresses=Addresses(worker.station, leaf.station),
            stations=tuple(each.station for each in described.workers),
            plan=folder / jobs.PLAN_FOLDER,
            session=session,
            schedule=jobs.job_schedule(folder, facts, port, kind),
            seed=seed,
            compression=compression,
        )
        with (
            local_processes(partition, ranks, pace) as machine,
            opened(kind.open, end, partition, machine) as exchange,
        ):
            place = (first, session, metrics, machine, kind.binned)
            yield Joined(facts, folder, partition, exchange, *place)
            exchange.close()


def _rank_and_size() -> tuple[int, int]:
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError) as error:
        raise JobError(
            "RANK and WORLD_SIZE do not say which worker this is: start the script with torchrun, "
            "as torchrun --nnodes 4 --nproc-per-node 1 ... script.py."
        ) from error


def _number(network: DescribedNetwork, rank: int, each: int) -> int:
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    here = {(each.name, each.mac) for each in interfaces()}
    own = [
        number
        for number, worker in enumerate(network.workers)
        if (worker.interface, worker.mac.lower()) in here
    ]
    if len(own) != 1:
        return rank
    if local > each:
        raise JobError(
            f"torchrun has started {local} processes here, and worker {own[0]} of the network has "
            f"processes = {each}: give all machines a network file with processes = {local}, and a "
            f"job of switchgnn plan --per-machine {local}."
        )
    seat = int(os.environ["LOCAL_RANK"]) if local == each > 1 else rank % each
    return own[0] * each + seat


def _meet(number: int, size: int) -> list[int]:
    if size == 1:
        return [0]
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
    return [numbers.index(worker) for worker in range(size)]


def _cores() -> int:
    """Return the same number in all processes on the same cores, in any container."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    text = f"{boot} {sorted(os.sched_getaffinity(0))}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)


def _check(job: jobs.Job, network: DescribedNetwork, size: int, folder: Path) -> None:
    if size != job.workers:
        raise JobError(f"The job {folder} is for {job.workers} workers, and {size} were started.")
    each = job.workers_per_machine
    if len(network.workers) * each != job.workers:
        raise JobError(
            f"The job {folder} is for {job.workers // each} workers, and the network has "
            f"{len(network.workers)}."
        )
    if other := [worker.processes for worker in network.workers if worker.processes != each]:
        raise JobError(
            f"The job {folder} has workers_per_machine = {each}, and a worker of the network has "
            f"processes = {other[0]}: change one of them."
        )
    leaf_of_worker = network.leaf_of_worker if network.cables else ()
    if (leaf_of_worker, len(network.spines)) != (job.leaf_of_worker, job.spines):
        raise JobError(
            f"The job {folder} is for other leaves and spines than the network has: write it "
            "again for them."
        )


@contextmanager
def _together(interface: str, size: int, pace: Pace, number: int) -> Iterator[None]:
    if size == 1 or dist.is_initialized():
        yield
        return
    if interface:
        # Without it gloo takes the address of the machine's name.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    with ExitStack() as stack:
        with collective():
            store, rank, _ = next(iter(rendezvous("env://", timeout=timeout_of(pace))))
            # Restarted workers must not find the addresses of the last time.
            times = store.add(f"switchgnn/{rank}", 1)
            meeting = dist.PrefixStore(  # type: ignore[attr-defined]
                f"switchgnn/meeting/{times}", store
            )
            stack.enter_context(together(meeting, rank, size, pace, worker=number))
        yield


def _shared_session(
    session: int | None,
    folder: Path,
    network: DescribedNetwork,
    *,
    number: int,
    size: int,
    first: int,
) -> int:
    error: SwitchGNNError | None = None
    if session is None and number == 0:
        try:
            session = open_session(folder / jobs.PLAN_FOLDER, network)
        except SwitchGNNError as failed:
            error = failed
    shared = torch.tensor([-1 if session is None else session])
    if size > 1:
        with collective():
            dist.broadcast(shared, first)
    if error is not None:
        raise error
    if int(shared) < 0:
        raise JobError("Worker 0 could not open a session on the switches; see its own error.")
    return int(shared)
