"""The runner of `run` and `train`: build a network, install a plan, run workers, count."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import product, starmap
from pathlib import Path
from typing import Any, Generic, TypeVar

from switchgnn.base.files import private_folder, writing
from switchgnn.base.network_file import network_text
from switchgnn.base.tasks import until_over
from switchgnn.controller import (
    ControllerError,
    Counters,
    DesiredStates,
    InstallReport,
    P4RuntimeClient,
    Share,
    install_each,
    leaf_spine_networks,
    leaf_spine_switch_plan,
    load_plan,
    read_counters,
    star_network,
)
from switchgnn.controller.admission import JobRequest, job_named
from switchgnn.controller.base.place import Place
from switchgnn.controller.counters import bank_slots
from switchgnn.controller.jobs import remove_job
from switchgnn.controller.p4runtime.client import program_cookie
from switchgnn.controller.target import client_of, served_jobs
from switchgnn.controller.watch import WATCH_DEADLINE, watch
from switchgnn.host.links.faults import Faults, worker_link
from switchgnn.host.links.transport import LinkConfig
from switchgnn.host.metrics import METRICS_EVENT, metrics_address
from switchgnn.host.wire.native import native_frames
from switchgnn.jobs.logs import Recordings, RunLogs, log_install, run_logs
from switchgnn.jobs.workers import naming_who_releases
from switchgnn.live.board import EVERY, Board, JobOutcome
from switchgnn.live.polling import kinds_of, polling_switches
from switchgnn.p4src import Program, program_of
from switchgnn.planner import PlanRequest, read_manifest
from switchgnn.planner.base.lanes import LANES, TOFINO_LANES, WIDEST_ANSWER
from switchgnn.planner.costs.seconds import NetworkModel
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.plan.leaf_spine import LeafSpineParts
from switchgnn.planner.presets import PlanContext
from switchgnn.profiles import UNLIMITED, find_profile
from switchgnn.profiles.profile import network_of
from switchgnn.softswitch.native.engine import Ahead, compile_ahead
from switchgnn.topologies import (
    ETHERNET_MTU,
    FABRICS,
    Backend,
    BackgroundTraffic,
    Bmv2Log,
    Fabric,
    FabricChoice,
    FabricError,
    Target,
    TlsFolder,
    Topology,
    WireBytes,
    cable_name,
    carried,
    choose,
    folder_for_sockets,
    free_tcp_port,
    socket_address,
)
from switchgnn.topologies.choice import KeptFabric, KeptPorts
from switchgnn.topologies.forkserver import Forkserver

# Called with (step, done, total); total is 0 when unknown.
StepListener = Callable[[str, float, int], None]
Result = TypeVar("Result")
_LOG = logging.getLogger(__name__)
# The network file of a switch, in the folder of the job that started it.
NETWORK_FILE = "network.toml"
_COMMON_HOST = "127.0.0.1"
# A link without a limit is memory of this machine, with both ends in it.
_MEMORY_BITS, _DELAY, _MEGA = 1e11, 20e-6, 1e6


@dataclass(frozen=True, kw_only=True)
class NetworkJob:
    """The network of a run or a training."""

    workers: int
    slots: int  # the aggregators that the blocks of all pools may use
    # a choice or `auto`
    target: str
    fabric: str
    bandwidth: float | None  # Mbit/s per link, or None
    # the queue length in packets from which packets are marked, as `install` takes it, like
    # `queue`; with a queue of 0 it applies on all ports
    ecn_threshold: int
    queue: int = 0
    background: int = 0  # TCP flows from each worker to the next, on the same links
    request: PlanRequest = field(default_factory=PlanRequest)  # the strategies to plan with
    leaf_spine: LeafSpine | None = None  # None for a star around one switch
    # what embedded switches run the program as; None: as the environment says
    backend: Backend | None = None
    bmv2_log: Bmv2Log = Bmv2Log.OFF
    # the address and the port where worker 0 serves metrics; None: no metrics
    metrics: tuple[str, int] | None = None
    faults: str = ""  # what to inject on links and cables, as `Faults.parse` takes it
    # TCP port of the first switch's P4Runtime, the next ports are those of the others; 0: Unix
    # sockets, or free ports with certificates
    grpc_port: int = 0
    tls: Path | None = None  # the folder with certificates for P4Runtime; None: plain gRPC
    pcap: Path | None = None  # the folder for a file of each link's packets, or None
    spare_ports: int = 0  # of the switch, beyond those of the workers
    on: KeptPorts | None = None  # where to be a job on another command's switch; None: on its own

    def choose_fabric(self) -> FabricChoice:
        """Check the faults and the certificates; choose the switch and the network."""
        cables_with_faults(self)
        if self.on is not None:
            return self.on.choice
        if self.tls is not None:
            TlsFolder(self.tls.absolute()).check()
        choice = choose(self.target, self.fabric, self.backend)
        if self.bmv2_log is not Bmv2Log.OFF and choice.target is not Target.BMV2:
            raise FabricError("--bmv2-log is for BMv2 only: add --target bmv2, or leave it out.")
        return choice

    @property
    def program(self) -> Program:
        """The program of the switches; SwitchGNN's also forwards other frames."""
        return program_of(self.target)

    @property
    def context(self) -> PlanContext:
        """The facts that strategies depend on."""
        limits = find_profile(self.target) if self.target == Target.TOFINO else UNLIMITED
        return PlanContext(
            *(self.workers, self.slots),
            leaf_spine=self.leaf_spine,
            banks=limits.banks,
            least_lanes=limits.least_lanes,
        )

    def network_on(self, target: Target) -> NetworkModel:
        """Describe the links, the switch and the processors of this machine."""
        profile = find_profile(target.value)
        return network_of(
            profile,
            bits_per_second=_MEMORY_BITS if self.bandwidth is None else self.bandwidth * _MEGA,
            delay=_DELAY,
            loop=profile.passes_per_second if target is Target.BMV2 else None,
            cores=os.cpu_count(),
        )


def widest_on(target: str) -> int:
    """Return the numbers of the widest frame that a switch takes, a `Target` or another."""
    if target == Target.TOFINO:
        return TOFINO_LANES
    return LANES[-1] if target == Target.EMBEDDED else WIDEST_ANSWER


def reduced_lanes(target: str) -> int:
    """Return the numbers of a whole fragment of an all-reduce."""
    return TOFINO_LANES if target == Target.TOFINO else LANES[-1]


class RunObserver:
    """Observes a run without influence on it, and updates a page, if there is one."""

    def __init__(self, board: Board | None = None) -> None:
        self._board = board
        # how often workers report, in seconds; 0: never
        self.tell_every = EVERY if board else 0.0

    def step(self, name: str) -> None:
        """Show a step."""
        if self._board:
            self._board.step(name)

    @contextmanager
    def over(
        self, transport: str, fabric: Fabric | None, bank_slots: Sequence[int] = ()
    ) -> Iterator[None]:
        """Show a running network during the block, or one process without a network.

        `bank_slots`: for each switch, the most slots of each bank that its plan uses; empty without
        a plan.
        """
        if self._board is None:
            yield
            return
        if fabric is None:
            self._board.begin(f"transport {transport}, one process")
            yield
            return
        network = fabric.describe()
        ran_on = "Mininet" if fabric.workers_have_hosts else "loopback"
        self._board.begin(
            f"transport {transport}, {kinds_of(network)}, {ran_on}",
            [True] * len(network.workers),
            [switch.name for switch in network.in_order],
            network.job,
        )
        with polling_switches(network, self._board.switch, bank_slots):
            yield
            self._board.finish()

    def event(self, worker: int, event: dict[str, Any]) -> None:
        """Show the metrics of a worker, and worker 0's epochs."""
        if self._board is None:
            return
        if event["event"] == METRICS_EVENT:
            self._board.worker(worker, event["values"])
        elif event["event"] == "epoch" and worker == 0:
            changes = event.get("changes") or [{"words": ""}]
            self._board.epoch(event["epoch"], event["loss"], changes[-1]["words"])

    def done(self, words: str, *, right: bool = True) -> None:
        """Show the end of the run, which may be kept for long."""
        if self._board:
            self._board.end(JobOutcome.DONE if right else JobOutcome.WRONG, words)


NOBODY = RunObserver()


@dataclass(frozen=True)
class Workspace:
    """Where a job runs: its folder, its logs, and its listeners."""

    folder: Path
    logs: RunLogs
    listener: StepListener
    forkserver: Forkserver | None
    observer: RunObserver = NOBODY

    def step(self, name: str, done: float = 0, total: int = 0) -> None:
        """Tell the listeners about a step."""
        self.logs.step(name)
        self.observer.step(name)
        self.listener(name, done, total)


@contextmanager
def workspace(
    step: StepListener, forkserver: Forkserver | None, log_dir: Path | None, observer: RunObserver
) -> Iterator[Workspace]:
    """Make the folder of a job and remove it after the block; keep the logs if it fails."""
    with private_folder("switchgnn-") as folder, run_logs(log_dir, folder) as logs:
        yield Workspace(folder, logs, step, forkserver, observer)


@dataclass(frozen=True, kw_only=True)
class Workers(Generic[Result]):
    """What the workers of a job do. The plan is in the folder ``plan`` of the workspace."""

    program: Program  # the program of the switches
    parts: LeafSpineParts | None  # those of the plan for leaves and spines; None for a star
    transport: str  # what carries the sums
    # runs all workers, given their links in order
    run: Callable[[Fabric, list[LinkConfig]], Result]
    recordings: Recordings = field(default_factory=Recordings)
    # whether each worker has a file with the rows that it sends to other hosts
    scheduled: bool = False
    shows_slots: bool = True  # whether the slots of the switches follow from the plan
    # whether they go on while the switch is silent, if the network of the fabric does
    survive: bool = False
    # bytes of the largest packet that links take, where they have interfaces
    mtu: int = ETHERNET_MTU


@dataclass(frozen=True, kw_only=True)
class FinishedWorkers(Generic[Result]):
    """The results of the workers, while the network still runs."""

    fabric: Fabric
    ahead: Ahead | None  # the compilation of the program; None for BMv2
    result: Result
    entries: int  # the table entries of all switches
    install_seconds: float  # the time of the installation
    # the counters of each switch around the exchanges, leaves first
    before: Sequence[Counters]
    after: Sequence[Counters]
    # bytes of each worker's interface; None where they are not counted
    wires: list[WireBytes] | None
    cables: WireBytes | None  # bytes between switches, or None
    cable_faults: dict[str, int]  # frames between switches that a fault was injected into, by kind
    background_bytes: int  # bytes that background flows delivered


@contextmanager
def finished(
    job: NetworkJob, choice: FabricChoice, workers: Workers[Result], work: Workspace
) -> Iterator[FinishedWorkers[Result]]:
    """Run a job; keep its network until the end of the block."""
    with ExitStack() as stack:
        # Hosts find their code compiled, outside of all deadlines.
        native_frames()
        ports, ahead = job.on, None
        if ports is None:
            fabric, ahead = _own_fabric(stack, job, choice, workers, work)
            file = work.folder / NETWORK_FILE
            with writing(file):
                file.write_text(network_text(fabric.describe()))
            if job.spare_ports:
                ports = KeptPorts.read(file, range(1, job.workers + 1))
        else:
            stack.enter_context(ports.claimed())
        if ports is not None:
            more = {"forkserver": work.forkserver, "logs": work.logs.folder}
            fabric = stack.enter_context(KeptFabric(ports, work.folder, **more))
        with _installed(job, fabric, workers, work.step) as on:
            if job.on is not None and not job.on.stays:
                stack.callback(_remove, job.on)
            done = _exchanged(job, on, workers, work.observer, ahead)
        yield done


def _own_fabric(
    stack: ExitStack,
    job: NetworkJob,
    choice: FabricChoice,
    workers: Workers[Result],
    work: Workspace,
) -> tuple[Fabric, Ahead | None]:
    sockets = stack.enter_context(folder_for_sockets(work.folder))
    topology = _topology(job, choice.target, sockets, workers)
    work.step("compiling the program")
    ahead = None
    if choice.target.is_embedded:
        ahead = compile_ahead(workers.program.json, job.backend)
        topology = replace(topology, backend=ahead.backend)
    work.step("starting the switch" if job.leaf_spine is None else "starting the switches")
    fabric = FABRICS[choice.fabric](
        topology,
        work.folder,
        cable_faults=cables_with_faults(job),
        forkserver=work.forkserver,
        cable_recordings=workers.recordings.cables,
        logs=work.logs.folder,
    )
    return stack.enter_context(fabric), ahead


def _remove(on: KeptPorts) -> None:
    try:
        with on.turn(), client_of(on.network.switches[0]) as client:
            remove_job([client], on.network.job)
    except (ControllerError, FabricError) as error:
        # The results, or an error of the job itself, matter more.
        _LOG.warning("Job %s could not be removed: %s", on.network.job, error)


def _topology(job: NetworkJob, target: Target, sockets: Path, workers: Workers[Result]) -> Topology:
    def address(number: int) -> str:
        if job.grpc_port:
            return f"{_COMMON_HOST}:{job.grpc_port + number}"
        if job.tls:  # the certificates name that host
            return f"{_COMMON_HOST}:{free_tcp_port()}"
        return socket_address(sockets, f"switch-{number}")

    over = job.leaf_spine
    networks = (
        star_network(job.workers + job.spare_ports).alone
        if over is None
        else leaf_spine_networks(over.leaf_of_worker, over.spines)
    )
    return Topology(
        networks,
        target,
        tuple(map(address, range(len(networks.switches)))),
        bandwidth=job.bandwidth,
        tls=TlsFolder(job.tls.absolute()) if job.tls else None,
        backend=job.backend,
        bmv2_log=job.bmv2_log,
        mtu=workers.mtu,
    )


@dataclass(frozen=True)
class _InstalledPlan:
    """A fabric whose switches have their tables."""

    fabric: Fabric
    # one per switch, leaves first
    clients: Sequence[P4RuntimeClient]  # for reading, as other jobs are installed meanwhile
    places: Sequence[Place]
    entries: int  # of the job, on all switches
    shares: Sequence[Share]
    desired: DesiredStates
    report: InstallReport
    seconds: float  # the time of the installation

    @property
    def bank_slots(self) -> list[int]:
        """For each switch, the largest number of slots that its share uses in each bank."""
        return [bank_slots(share.plan.switch) for share in self.shares]

    def counters(self) -> list[Counters]:
        """Read the job's counters on all switches."""
        both = zip(self.clients, self.places, strict=True)
        return [read_counters(client).of_job(place) for client, place in both]


@contextmanager
def _installed(
    job: NetworkJob, fabric: Fabric, workers: Workers[Result], step: StepListener
) -> Iterator[_InstalledPlan]:
    started = time.perf_counter()
    network = fabric.describe()
    with job.on.turn() if job.on else nullcontext(), ExitStack() as stack:
        clients = [stack.enter_context(client_of(switch)) for switch in network.in_order]
        if job.on and clients[0].get_pipeline_cookie() != program_cookie(workers.program):
            raise FabricError(
                f"The switch of {job.on.file} runs another program than this job needs, and "
                "loading that would end the other jobs: leave out --on."
            )
        shares = shares_of(fabric.folder / "plan", workers.parts, fabric.topology, clients)
        desired = DesiredStates(workers.program, job.ecn_threshold, job.queue)
        report = install_each(
            shares,
            desired,
            JobRequest(network.job, since=int(time.time())),
            new_session=True,
            progress=lambda _address, done, total: step("installing", done, total),
        )
    log_install(report)
    seconds = time.perf_counter() - started
    with ExitStack() as stack:
        readers = [client_of(switch, primary=False) for switch in network.in_order]
        places = []
        for client in map(stack.enter_context, readers):
            jobs = [place for place, _ in served_jobs(client)]
            places.append(job_named(jobs, network.job, client.address))
        states = [desired.of(*each) for each in zip(shares, places, strict=True)]
        # One more on each switch is the session.
        entries = sum(1 + sum(map(len, state.rows.values())) for state in states)
        yield _InstalledPlan(fabric, readers, places, entries, shares, desired, report, seconds)


def shares_of(
    plan: Path, parts: LeafSpineParts | None, topology: Topology, clients: Sequence[P4RuntimeClient]
) -> list[Share]:
    """Return the part of the plan that each switch serves, in order."""
    manifest = read_manifest(plan)
    if parts is None:
        plans = [load_plan(plan)]
    else:
        plans = [leaf_spine_switch_plan(manifest, part) for part in parts.switches]
    networks = [switch.network for switch in topology.switches]
    return [Share(*each) for each in zip(plans, networks, clients, strict=True)]


def _exchanged(
    job: NetworkJob,
    on: _InstalledPlan,
    workers: Workers[Result],
    observer: RunObserver,
    ahead: Ahead | None,
) -> FinishedWorkers[Result]:
    fabric = on.fabric
    links = [
        _link_config(job, on, workers, worker, observer.tell_every) for worker in range(job.workers)
    ]
    slots = on.bank_slots if workers.shows_slots else ()

    def counters() -> list[Counters]:
        try:
            return on.counters()
        except ControllerError:
            if not survive:
                raise
            return before

    survive = workers.survive and not fabric.workers_have_hosts
    with BackgroundTraffic(fabric, job.background) as background:
        before = on.counters()
        wires, cables = fabric.wire_bytes(), fabric.cable_bytes()
        received = background.received_bytes()
        with ExitStack() as stack:
            if survive and job.on is None:
                stack.enter_context(_kept_installed(on))
            stack.enter_context(observer.over(workers.transport, fabric, slots))
            stack.enter_context(naming_who_releases(counters, job.leaf_spine, job.workers))
            result = workers.run(fabric, links)
        received = background.received_bytes() - received
        wires, cables = carried(wires, fabric.wire_bytes()), carried(cables, fabric.cable_bytes())
        after = counters()
        cable_faults = fabric.cable_injected()
    if job.background:
        # The interfaces would count the background flows as well.
        wires = cables = None
    return FinishedWorkers(
        fabric=fabric,
        ahead=ahead,
        result=result,
        entries=on.entries,
        install_seconds=on.seconds,
        before=before,
        after=after,
        wires=wires,
        cables=WireBytes(*map(sum, zip(*cables, strict=True))) if cables else None,
        cable_faults=cable_faults,
        background_bytes=received,
    )


def _kept_installed(on: _InstalledPlan) -> AbstractContextManager[None]:
    """Install the plan again during the block wherever a switch has lost it."""
    network = on.fabric.describe()

    def look(over: threading.Event) -> None:
        clients = [client_of(each, deadline=WATCH_DEADLINE) for each in network.in_order]
        shares = [
            replace(share, switch=client) for share, client in zip(on.shares, clients, strict=True)
        ]
        try:
            job = JobRequest(network.job)
            watch(shares, on.desired, job, on_event=lambda it: _LOG.info(it.message), stop=over)
        except ControllerError as error:
            _LOG.warning("The plan is no longer kept installed: %s", error)

    return until_over(look, "watch")


def _link_config(
    job: NetworkJob, on: _InstalledPlan, workers: Workers[Result], worker: int, tell_every: float
) -> LinkConfig:
    fabric, topology = on.fabric, on.fabric.topology
    return LinkConfig(
        worker=worker,
        link=fabric.worker_link(worker),
        addresses=topology.addresses(worker),
        stations=tuple(map(topology.station, range(topology.workers))),
        plan=fabric.folder / "plan",
        session=on.report.session,
        schedule=schedule_file_of(fabric.folder, worker) if workers.scheduled else None,
        faults=job.faults,
        recording=workers.recordings.of_worker(worker),
        metrics=metrics_address(job.metrics, worker) if job.metrics else "",
        tell_every=tell_every,
        lanes=reduced_lanes(topology.target),
    )


def schedule_file_of(folder: Path, worker: int) -> Path:
    """Return the file with the rows that a worker sends to other hosts, if it has one."""
    return folder / f"schedule-{worker}.safetensors"


def cables_with_faults(job: NetworkJob) -> str:
    """Check the faults of a job; return them if they concern cables, or ""."""
    parsed, over = Faults.parse(job.faults), job.leaf_spine
    cables = product(range(over.leaves), range(over.spines)) if over else ()
    parsed.check(
        [*(worker_link(worker) for worker in range(job.workers)), *starmap(cable_name, cables)]
    )
    return job.faults if parsed.on_cables else ""
