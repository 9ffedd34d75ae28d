"""A worker process of `switchgnn train`, which gets its task as a line of JSON."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch
import torch.distributed as dist

from switchgnn.base.network import Station
from switchgnn.base.tasks import EventWriter, run_task
from switchgnn.host import Addresses, Pace
from switchgnn.host.direct.frames import PROTOCOL as DIRECT_PROTOCOL
from switchgnn.host.direct.framing import USUAL_MTU
from switchgnn.host.links.split import kinds_from, split_link
from switchgnn.host.links.transport import LinkConfig, WorkerEnd
from switchgnn.host.metrics import WorkerView, serving_metrics, telling_metrics
from switchgnn.host.paths.transport import PathsTransport
from switchgnn.host.reduce.connection import reduce_stream
from switchgnn.host.reduce.reducer import Reducer
from switchgnn.host.registry import transport_kind
from switchgnn.host.wire.header import PROTOCOL, Kind
from switchgnn.training.base.errors import collective
from switchgnn.training.base.options import ReduceBy
from switchgnn.training.buckets import Overlap
from switchgnn.training.data.partition import Partition, read_partition
from switchgnn.training.exchange.adaptation import Adaptation, PathForecast
from switchgnn.training.exchange.gradients import pace_gloo, share_cores, together_in_file
from switchgnn.training.exchange.machine import local_processes, opened
from switchgnn.training.exchange.standby import Rendezvous, Standby
from switchgnn.training.trainer import EpochReport, Training, train_as_worker

# The link of a worker before it has one, and of one without a network.
_NOBODY = Station("00:00:00:00:00:00", "0.0.0.0")  # noqa: S104
NO_LINK = LinkConfig(worker=0, link="", addresses=Addresses(_NOBODY, _NOBODY))


@dataclass(frozen=True, kw_only=True)
class TrainTask:
    """The task of one worker process."""

    training: Training
    transport: str = ""  # a name of `switchgnn.host.registry`
    pace: Pace = field(default_factory=Pace)
    sampling: float = 1.0  # the share of rows that are sent
    mtu: str = str(USUAL_MTU)  # as `--mtu`, for frames between hosts
    phases: bool = False  # whether hosts send to each other in phases
    # what adds up the gradients; the switch for the transport `switch` alone
    reduce: ReduceBy = ReduceBy.GLOO
    # the costs of the paths of blocks and gradients, which then change with observed times
    adapt: PathForecast | None = None
    config: LinkConfig = NO_LINK  # has what the transport needs
    partitions: Path = Path()  # the folder of all partitions
    meeting: Path | None = None  # the file in which the workers meet; None for a single one
    # how many workers share the link, and which of them this is; the first uses it for all
    per_machine: int = 1
    seat: int = 0

    @property
    def worker(self) -> int:
        """The number of the worker."""
        return self.config.worker * self.per_machine + self.seat


def run(line: str) -> None:
    """Do the task of a line of JSON; print one after each epoch, and one at the end."""
    run_task(TrainTask, line, _train)


def _train(task: TrainTask, events: EventWriter) -> None:
    config = task.config
    partition = read_partition(task.partitions, task.worker)
    share_cores(partition.workers)
    with ExitStack() as stack:
        stack.enter_context(_group(task, partition.workers))
        ranks = range(partition.workers)
        machine = stack.enter_context(local_processes(partition, ranks, task.pace))
        meeting = None
        if task.pace.silence and machine is None and partition.workers > 1:
            meeting = Rendezvous.of_all(partition.worker, partition.workers, task.pace)
        end, reducer = _end(task, partition), None
        server = task.reduce is ReduceBy.SERVER
        limited = pace_gloo(config.link, end.workers - 1 if server else 1)
        either = task.adapt is not None and task.adapt.reduce
        bits = ReduceBy.SWITCH.bits if either else task.reduce.bits
        if bits and end.workers > 1 and not task.seat:
            leaders = None if machine is None else machine.leaders
            end, reducer = stack.enter_context(switch_sums(end, bits, leaders))
        training = task.training
        if (limited and not bits) or (task.adapt is not None and bits):
            # Each of several connections at once would have the whole rate; and the standby keeps
            # the all-reduces over the switch in order with exchanges.
            training = replace(training, overlap=Overlap.NONE)
        kind = transport_kind(task.transport)
        transport = stack.enter_context(opened(kind.open, end, partition, machine))
        adaptation = standby = None
        if task.adapt is not None and isinstance(transport, PathsTransport):
            standby = None if meeting is None else Standby(transport, meeting)
            adaptation = Adaptation(
                *(transport, task.adapt, partition.worker, partition.workers),
                set_paths=(standby or transport).set_paths,
                beside=standby is not None,
            )

        def tell(report: EpochReport) -> None:
            traffic, told = transport.traffic._asdict(), asdict(report)
            if standby is not None:
                told["changes"] = [*told["changes"], *standby.take_changes()]
            events.write("epoch", **told, traffic=traffic, **transport.report)

        @contextmanager
        def seen(view: WorkerView) -> Iterator[None]:
            telling = telling_metrics(events, config.tell_every, view)
            with serving_metrics(config.metrics, view), telling:
                yield

        ledger = train_as_worker(
            *(partition, transport, training, tell),
            seen=seen,
            reducer=reducer,
            binned=kind.binned,
            machine=machine,
            adaptation=adaptation,
            standby=standby,
            server=server,
        )
        traffic = transport.traffic._asdict()
        if standby is not None:
            standby.close()
        transport.close()
    events.write("finished", traffic=traffic, **ledger.to_dict(), vertices=len(partition.vertices))


def _group(task: TrainTask, size: int) -> AbstractContextManager[None]:
    if size == 1 or task.meeting is None:
        return nullcontext()
    return together_in_file(task.meeting, task.worker, size, task.pace)


def _end(task: TrainTask, partition: Partition) -> WorkerEnd:
    seed = task.training.options.seed
    return WorkerEnd.of(
        task.config,
        workers=partition.workers // partition.workers_per_machine,
        vertices=partition.sent_rows,
        pace=task.pace,
        sampling=task.sampling,
        seed=seed,
        mtu=task.mtu,
        phases=task.phases,
        compression=task.training.compression.of_rows(seed),
    )


@contextmanager
def switch_sums(
    end: WorkerEnd, bits: int, group: dist.ProcessGroup | None = None
) -> Iterator[tuple[WorkerEnd, Reducer]]:
    """Share the link of a worker between neighbour sums and all-reduces, for the block.

    The end is for the neighbour sums: it opens the other half of the link. The workers agree on the
    first fragment in their process group, or that of their leaders.

    `bits`: of each number, 48 or 32.
    """
    sums, reduces = split_link(end.open_link(PROTOCOL, DIRECT_PROTOCOL), kinds_from(Kind.REDUCE))
    with sums, reduces:
        stream = reduce_stream(end, reduces, pace=end.pace, clock=end.clock, bits=bits)
        first = torch.tensor([stream.query().first])
        with collective():
            dist.all_reduce(first, dist.ReduceOp.MAX, group)
        stream.start(int(first))
        with Reducer(stream) as reducer:
            yield replace(end, shared=sums), reducer
