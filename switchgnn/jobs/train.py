"""What `switchgnn train` trains, its files (plan, partitions, schedules), and all its steps."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.base.machine import Amount
from switchgnn.controller.controls.banks import reduce_slots
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.host.direct.framing import USUAL_MTU, Framing
from switchgnn.host.host_baseline import Exchanges, host_traffic
from switchgnn.host.links.transport import LinkConfig
from switchgnn.host.metrics import metrics_address
from switchgnn.host.reduce.reduction import frames_of_floats
from switchgnn.host.registry import SWITCH, SwitchProgram, TransportKind, transport_kind
from switchgnn.host.wire.native import hosts_run_as
from switchgnn.jobs import report, runner
from switchgnn.jobs.logs import Recordings
from switchgnn.jobs.train_report import EpochListener, Recorder, TrainReport
from switchgnn.jobs.workers import EventListener, follow_workers, run_workers, worker_command
from switchgnn.p4src import Program, load_strawman
from switchgnn.planner import (
    Direction,
    Graph,
    Plan,
    PlanContext,
    PlanRequest,
    ResolvedStrategies,
    boundary_edges,
    resolve_strategies,
    write_plan,
)
from switchgnn.planner.base.lanes import BANK_LANES
from switchgnn.planner.build import build_resolved
from switchgnn.planner.costs import forecast
from switchgnn.planner.costs.forecast import build_auto, choose_lanes, predict_ways
from switchgnn.planner.costs.machine import MachineForecast, MeasuredCosts, reduce_seconds
from switchgnn.planner.costs.quickest import MOST_EDGES
from switchgnn.planner.plan.leaf_spine import LeafSpineParts, split_for_leaf_spine
from switchgnn.planner.presets import PAPER, preset_strategies
from switchgnn.profiles import find_profile
from switchgnn.softswitch.native.engine import Ahead
from switchgnn.topologies import Fabric, Target
from switchgnn.topologies.child import Child, temporary_files_in
from switchgnn.topologies.forkserver import Forkserver
from switchgnn.training.base.errors import TrainingError
from switchgnn.training.base.options import ReduceBy
from switchgnn.training.data.dataset import Dataset
from switchgnn.training.data.partition import split_machines, write_partitions
from switchgnn.training.data.weights import told_cost
from switchgnn.training.exchange.adaptation import BY_GLOO, BY_SWITCH, PathForecast, are_close
from switchgnn.training.exchange.gradients import TCP_PAYLOAD
from switchgnn.training.layers.models import build_model, exchanged_widths
from switchgnn.training.layers.pyg_layers import templates_removed
from switchgnn.training.train_worker import TrainTask

# The longest time in seconds between workers. The command itself notices dead or stuck processes.
SKEW = 180.0
# Seconds without an answer of the switch after which workers go on without it.
_SILENCE = 0.5
_WITHOUT_MIXED = " With --cache or --bits no plan leaves some destinations to the hosts."
# ResolvedStrategies, and a plan that was made with them.
Planned = tuple[ResolvedStrategies, Plan]
_LOG = logging.getLogger(__name__)
TRAIN_WORKER = worker_command("train-worker")


@dataclass(frozen=True, kw_only=True)
class TrainJob(runner.NetworkJob):
    """What to train, where, and over which transport.

    Over transports other than ``switch`` only the partition of `asked` counts, and for ``g3`` it
    is G3's unless another is asked for by name.
    """

    # the options that are the same for all workers; the link and files of each are filled in later
    task: TrainTask
    # the files that keep the packets of the links
    recordings: Recordings = field(default_factory=Recordings)
    planned: Planned | None = None  # a plan that exists already, and its strategies
    per_machine: int = 1  # how many processes share the link of each worker of the network

    @property
    def processes(self) -> int:
        """How many processes train."""
        return self.workers * self.per_machine

    @property
    def transport(self) -> TransportKind:
        """The transport of the task."""
        return transport_kind(self.task.transport)

    @property
    def framing(self) -> Framing | None:
        """The frames between hosts; None over other transports."""
        return Framing.parse(self.task.mtu) if self.transport.between_hosts else None

    @property
    def program(self) -> Program:
        """The program of the switches; SwitchGNN's also forwards other frames."""
        strawman = self.transport.program is SwitchProgram.STRAWMAN
        return load_strawman() if strawman else super().program

    def cut(self, data: Dataset) -> Dataset:
        """Return a data set with its vertex cut, if one is asked for."""
        training = self.task.training
        found = data.cut_for(self.request, self.workers, training.options.seed)
        for what, asked in (
            ("--workers-per-machine", self.per_machine > 1),
            ("--sampling", self.task.sampling < 1),
            ("--keep", training.compression.keep < 1),
            ("--rest", training.compression.rest > 0),
        ):
            if asked and found.cut is not None:
                raise TrainingError(
                    f"{what} is for rows of vertices, and the replicas of a vertex cut send sums: "
                    f"leave it out, or --partition {self.request.partition}."
                )
        return found


@dataclass(frozen=True)
class PreparedTraining:
    """The files that were written for a training."""

    strategies: ResolvedStrategies
    plan: Plan
    scheduled: bool  # whether each worker has a schedule of what it sends to other hosts
    parts: LeafSpineParts | None  # those of the plan for leaves and spines; None for a star


def prepare_training(
    job: TrainJob, data: Dataset, folder: Path, progress: Callable[[str], None]
) -> PreparedTraining:
    """Write the plan, the partitions and the schedules; split the plan for a leaf-spine."""
    strategies, plan = plan_of(job, data, progress)
    write_plan(plan, folder / "plan")
    seed, of_vertices = job.task.training.options.seed, plan.assignment[: data.vertices]
    workers = split_machines(data.graph, of_vertices, job.per_machine, seed)
    write_partitions(data, workers, folder / "partitions", job.per_machine)
    paths = [runner.schedule_file_of(folder, worker) for worker in range(job.workers)]
    adapts = job.task.adapt is not None
    scheduled = job.transport.write(data.exchanged(plan.assignment)[0], plan, paths, adapts=adapts)
    parts = split_for_leaf_spine(plan, job.leaf_spine) if job.leaf_spine else None
    return PreparedTraining(strategies, plan, scheduled, parts)


def plan_of(
    job: TrainJob, data: Dataset, progress: Callable[[str], None]
) -> tuple[ResolvedStrategies, Plan]:
    """Plan the exchanges of a training, unless they are planned already."""
    if job.planned is not None:
        return job.planned
    graph, context, settings = _context(job, data, progress)
    strategies = _strategies(job, data, context)
    return strategies, build_resolved(graph, strategies, context, **settings)


def _widths(job: TrainJob, data: Dataset) -> dict[int, float]:
    training, options = job.task.training, job.task.training.options
    found = exchanged_widths(
        training.model,
        data.features.shape[1],
        data.classes,
        options.epochs,
        kept=options.precompute and not options.input_dropout,
    )
    return {width: times / options.epochs for width, times in found.items()}


def _context(
    job: TrainJob, data: Dataset, progress: Callable[[str], None]
) -> tuple[Graph, PlanContext, dict[str, Any]]:
    named = {each.value for each in Target}
    target = Target(job.target) if job.target in named else job.choose_fabric().target
    strawman = job.transport.program is SwitchProgram.STRAWMAN
    seed = job.task.training.options.seed
    progress("partition the vertices over the workers")
    context, assignment = choose_lanes(
        _request(job),
        data.cut or data.graph,
        job.context,
        _widths(job, data),
        seed,
        network=job.network_on(target),
        widest=BANK_LANES if strawman else runner.widest_on(target),
    )
    graph, assignment = data.exchanged(assignment)
    settings: dict[str, Any] = {
        "program": job.program.digest,
        "seed": seed,
        "directions": "both",
        "assignment": assignment,
        "progress": progress,
    }
    return graph, context, settings


def _request(job: TrainJob) -> PlanRequest:
    """Return what is asked for; with its own strategies a transport has one pool, single rows."""
    request, own = job.request, job.transport.partition
    alone = own is not None and request.partition is None and request.assignment is None
    if job.transport.strategies is not None:
        preset = PAPER if job.transport.needs_plan else request.preset
        request = replace(request, preset=preset, pools=1, rows=1)
    return replace(request, partition=own) if alone else request


def _strategies(job: TrainJob, data: Dataset, context: PlanContext) -> ResolvedStrategies:
    """Return the strategies that the transport uses: all, or only the partition."""
    transport = job.transport
    chosen = resolve_strategies(_request(job), data.cut or data.graph, context)
    if transport.strategies is None or data.cut is not None:
        return chosen
    plain = preset_strategies(PAPER, data.graph, context)
    return replace(plain, partition=chosen.partition, because={}, **transport.strategies)


@dataclass(frozen=True, eq=False)
class TransportPrediction:
    """The predicted time of an epoch's exchanges."""

    # by the ways of planner/costs/forecast.py; empty without a prediction
    seconds: Mapping[str, float]
    chosen: TransportKind  # the fastest transport
    why: str  # one sentence for the user
    job: TrainJob  # asks for a vertex cut where that is faster
    data: Dataset  # has it
    planned: Planned | None = None  # its plan and strategies; None between hosts alone
    # those with which paths may change: a plan that serves all destinations, unless it is mixed
    whole: Planned | None = None


def predict_transport(
    job: TrainJob,
    data: Dataset,
    progress: Callable[[str], None],
    measured: MeasuredCosts | None = None,
    *,
    cuts: bool = True,
) -> TransportPrediction:
    """Predict the time of exchanges over each transport, and choose one.

    What was `measured` on this machine counts instead of the times in the switch's profile.
    With the preset `auto` the plan may leave some destinations to the hosts, or with `cuts` be for
    a vertex cut. Over leaves and spines nothing is predicted, and the switches are chosen.
    """
    if job.leaf_spine is not None:
        why = "auto takes switch: only exchanges around one switch are predicted."
        return TransportPrediction({}, SWITCH, why, job, data)
    found, saving = _predicted(job, data, progress, measured), job.task.training.compression
    shares = job.task.sampling < 1 or job.per_machine > 1 or saving.active
    few = len(data.graph.indices) <= MOST_EDGES
    seed, made = job.task.training.options.seed, None
    if cuts and few and not shares and job.request.may_cut:
        made = job.request.with_cut(data.graph, job.workers, seed)
    if made is not None:
        job, data = replace(job, request=made[0]), replace(data, cut=made[1])
        cut = _predicted(job, data, progress, measured)
        found = min(found, cut, key=lambda it: min(it.seconds.values()))
    return found


def _predicted(
    job: TrainJob, data: Dataset, progress: Callable[[str], None], measured: MeasuredCosts | None
) -> TransportPrediction:
    expected = _expected(job, data, job.choose_fabric().target, measured)
    graph, context, settings = _context(job, data, progress)
    strategies = _strategies(job, data, context)
    whole = job.task.training.compression.of_rows(0).active
    if whole:
        # The sums of such a plan come from both, and only one of them could be cached.
        strategies = replace(strategies, leaves=False)
    made = build_auto(graph, strategies, context, expected, **settings)
    chosen = SWITCH if made.chosen == forecast.MIXED else transport_kind(made.chosen)
    planned = (strategies, made.plan) if chosen.in_switch else None
    why = f"{made.why}{_WITHOUT_MIXED if whole else ''}"
    kept = (strategies, made.plan if made.chosen == forecast.MIXED else made.whole)
    return TransportPrediction(made.seconds, chosen, why, job, data, planned, kept)


def predict_paths(
    job: TrainJob,
    data: Dataset,
    plan: Plan,
    first: str,
    measured: MeasuredCosts | None = None,
    *,
    keep_reduce: bool = False,
) -> PathForecast:
    """Predict each path of a plan's blocks, and of the all-reduce unless that is to be kept."""
    boundary = boundary_edges(data.exchanged(plan.assignment)[0], plan.assignment)
    expected = _expected(job, data, job.choose_fabric().target, measured)
    reduce = {} if keep_reduce else _reduce_seconds(job, data)
    if not are_close(*reduce.values()):
        reduce = {}
    ordered = dict(sorted(reduce.items(), key=itemgetter(1)))
    return PathForecast(tuple(expected.of_paths(plan, boundary)), first, ordered)


def bmv2_note(job: TrainJob, data: Dataset, plan: Plan) -> str:
    """Say how long BMv2 is predicted to take for the exchanges of a training."""
    boundary = boundary_edges(data.exchanged(plan.assignment)[0], plan.assignment)
    slow, fast = (
        predict_ways(plan, boundary, _expected(job, data, target))[SWITCH.name]
        for target in (Target.BMV2, Target.EMBEDDED)
    )
    epochs = job.task.training.options.epochs
    return (
        f"BMv2 is not built for speed: exchanges are predicted to take {slow * epochs:.3g} s, "
        f"{slow:.2g} s in each of {Amount(epochs):epoch}; {fast:.2g} s with --target embedded."
    )


def _expected(
    job: TrainJob, data: Dataset, target: Target, measured: MeasuredCosts | None = None
) -> MachineForecast:
    own = find_profile(target.value).host_exchange_seconds or 0.0
    mtu = Framing.parse(job.task.mtu).packet_bytes
    on = replace(job.network_on(target), mtu=mtu, window=job.task.pace.window)
    each_way = {width: times / len(Direction) for width, times in _widths(job, data).items()}
    exchanges = dict.fromkeys(Direction, each_way)
    return MachineForecast(on, exchanges, workers=job.workers, host_exchange=own, measured=measured)


def predicted_reduce(job: TrainJob, data: Dataset) -> ReduceBy:
    """Choose what adds up the gradients faster, the switch or Gloo's ring."""
    seconds = _reduce_seconds(job, data) if job.transport.in_switch else {}
    if not seconds:
        return ReduceBy.GLOO
    return ReduceBy.SWITCH if seconds[BY_SWITCH] < seconds[BY_GLOO] else ReduceBy.GLOO


def _reduce_seconds(job: TrainJob, data: Dataset) -> dict[str, float]:
    """Predict both; nothing for a program without all-reduces."""
    slots = reduce_slots(Layout.from_text(job.program.p4info))
    if not slots:
        return {}
    with templates_removed():
        model = build_model(job.task.training.model, data.features.shape[1], data.classes)
    numbers = sum(each.numel() for each in model.parameters() if each.requires_grad)
    network = job.network_on(job.choose_fabric().target)
    lanes = runner.reduced_lanes(job.target)
    frames = frames_of_floats(numbers, job.workers, slots, lanes=lanes)
    switch, ring = reduce_seconds(numbers, frames, TCP_PAYLOAD, job.workers, network)
    return {BY_SWITCH: switch, BY_GLOO: ring}


def run_training(
    job: TrainJob,
    data: Dataset,
    step: runner.StepListener,
    on_epoch: EpochListener,
    *,
    forkserver: Forkserver,
    log_dir: Path | None = None,
    observer: runner.RunObserver = runner.NOBODY,
    note: Callable[[str], None] = lambda _: None,
) -> TrainReport:
    """Plan, build, install and train; `note` is called with what is worth a line before that."""
    if not job.transport.networked:
        runner.cables_with_faults(job)
        with runner.workspace(step, forkserver, log_dir, observer) as work:
            return _alone(job, data, work, forkserver, on_epoch)
    choice = job.choose_fabric()
    with runner.workspace(step, forkserver, log_dir, observer) as work:
        work.step("planning")
        _LOG.info("%s", choice.reason)
        prepared = prepare_training(
            job, data, work.folder, lambda what: work.step(f"planning: {what}")
        )
        if cost := told_cost(data.graph, prepared.plan.assignment[: data.vertices], data.factors):
            note(cost)
        if choice.target is Target.BMV2 and job.transport.in_switch and prepared.parts is None:
            note(bmv2_note(job, data, prepared.plan))
        recorder = Recorder(job.processes, on_epoch)
        with runner.finished(job, choice, _workers(job, prepared, recorder, work), work) as done:
            ends = done.result
        what = _what(job, data, choice.reason, done.ahead) | _planned(job, prepared)
        between = _leaf_spine_report(job, data, prepared, done)
        wires = None if done.wires is None else [wire._asdict() for wire in done.wires]
        return recorder.report(ends, wires, leaf_spine=between, **what)


def _workers(
    job: TrainJob, prepared: PreparedTraining, recorder: Recorder, work: runner.Workspace
) -> runner.Workers[list[dict[str, Any]]]:
    def task(config: LinkConfig, seat: int) -> TrainTask:
        if seat:  # the first process reports on the link
            config = replace(config, metrics="", tell_every=0.0)
        return replace(
            job.task,
            config=config,
            partitions=work.folder / "partitions",
            meeting=work.folder / "meeting",
            per_machine=job.per_machine,
            seat=seat,
        )

    def train(fabric: Fabric, links: list[LinkConfig]) -> list[dict[str, Any]]:
        work.step("training")
        tasks = [task(link, seat) for link in links for seat in range(job.per_machine)]
        if workers.survive and not fabric.workers_have_hosts:
            # Gloo's connections pass no switch.
            pace = replace(job.task.pace, silence=_SILENCE)
            tasks = [replace(each, pace=pace) for each in tasks]
        hear = _heard_by(recorder, work.observer, job.per_machine)
        return run_workers(fabric, TRAIN_WORKER, tasks, job.task.pace, listen=hear)

    workers = runner.Workers(
        program=job.program,
        parts=prepared.parts,
        transport=job.task.transport,
        run=train,
        recordings=job.recordings,
        # Links also carry gradients, in packets of the usual size.
        mtu=max(USUAL_MTU, job.framing.packet_bytes if job.framing else 0),
        scheduled=prepared.scheduled,
        survive=job.task.adapt is not None and job.per_machine == 1,
        shows_slots=job.transport.program is SwitchProgram.SWITCHGNN and job.transport.needs_plan,
    )
    return workers


def _heard_by(
    recorder: Recorder, observer: runner.RunObserver, per_machine: int = 1
) -> EventListener:
    def listen(worker: int, event: dict[str, Any]) -> None:
        if worker % per_machine == 0:
            observer.event(worker // per_machine, event)
        recorder(worker, event)

    return listen


def _alone(
    job: TrainJob,
    data: Dataset,
    work: runner.Workspace,
    forkserver: Forkserver,
    on_epoch: EpochListener,
) -> TrainReport:
    folder = work.folder
    work.step("planning")
    write_partitions(data, np.zeros(data.vertices, dtype=np.int32), folder / "partitions")
    metrics = metrics_address(job.metrics, 0) if job.metrics else ""
    config = replace(job.task.config, metrics=metrics)
    task = replace(job.task, config=config, partitions=folder / "partitions")
    child = Child(
        "Worker 0",
        TRAIN_WORKER,
        work.logs.folder / "worker-0.log",
        pipe=True,
        environment=temporary_files_in(folder),
        forkserver=forkserver,
    )
    recorder = Recorder(1, on_epoch)
    work.step("training")
    with work.observer.over(job.task.transport, None):
        ends = follow_workers([child], [task], task.pace, _heard_by(recorder, work.observer))
    job = replace(job, workers=1, per_machine=1)
    what = _what(job, data, "one process, without a network")
    return recorder.report(ends, None, **what, strategy=job.request.preset)


def _leaf_spine_report(
    job: TrainJob,
    data: Dataset,
    prepared: PreparedTraining,
    done: runner.FinishedWorkers[list[dict[str, Any]]],
) -> report.LeafSpineReport | None:
    if prepared.parts is None or job.transport.program is not SwitchProgram.SWITCHGNN:
        return None
    exchanges = [
        Exchanges(Direction(each["direction"]), each["width"], each["times"])
        for each in done.result[0]["exchanges"]
    ]
    assignment = prepared.plan.assignment
    boundary = boundary_edges(data.exchanged(assignment)[0], assignment)
    alone = host_traffic(boundary, job.workers, exchanges, Framing.parse(job.task.mtu))
    return report.report_leaf_spine(
        prepared.parts, prepared.plan.manifest, boundary, exchanges, alone, done=done
    )


def _what(job: TrainJob, data: Dataset, reason: str, ahead: Ahead | None = None) -> dict[str, Any]:
    return {
        "transport": job.task.transport,
        "dataset": data.name,
        "model": job.task.training.model.model.rpartition(":")[2],
        "reason": reason,
        **report.ran_ahead(ahead),
        "mtu": None if job.framing is None else job.framing.told,
        "bandwidth": job.bandwidth if job.transport.networked else None,
        "hosts": hosts_run_as() if job.transport.networked else None,
        "vertices": data.vertices,
        "edges": len(data.graph.indices),
        "workers": job.processes,
        "workers_per_machine": job.per_machine,
        "reduce": job.task.reduce.value if job.processes > 1 else None,
    }


def _planned(job: TrainJob, prepared: PreparedTraining) -> dict[str, Any]:
    manifest = prepared.plan.manifest
    names = report.strategy_names(manifest)
    if not job.transport.needs_plan:
        names = {"partition": names["partition"]}
    return {
        **names,
        "lanes": manifest.lanes if job.transport.needs_plan else None,
        "strategy": _request(job).preset,
        "why": tuple(prepared.strategies.because.values()),
    }
