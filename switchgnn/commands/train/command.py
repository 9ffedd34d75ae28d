"""`switchgnn train`: full-graph GNN training over the switch, or between hosts."""

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.interruptible import end_like_interrupted
from switchgnn.base.machine import Amount
from switchgnn.base.network_file import Target
from switchgnn.base.options import with_short_help
from switchgnn.commands.shared.config_file import ConfigOption
from switchgnn.commands.shared.console import captured_line, leaf_spine_table, plain_console
from switchgnn.commands.shared.options import find_metrics
from switchgnn.commands.train import display
from switchgnn.commands.train.follow import TrainEvents
from switchgnn.commands.train.options import COMMON, TrainCommandOptions
from switchgnn.host.registry import AUTO, G3, HOST, SWITCH, TransportKind
from switchgnn.jobs.logs import Recordings, recordings_in, told_aloud
from switchgnn.jobs.plots import draw_plots
from switchgnn.jobs.runner import NetworkJob, RunObserver
from switchgnn.jobs.train_report import EpochListener, TrainReport
from switchgnn.jobs.workers import training_forkserver
from switchgnn.p4src import program_of
from switchgnn.planner.partition.workers import check_assignment, check_workers
from switchgnn.planner.presets import AUTO as PLAN_AUTO
from switchgnn.topologies.forkserver import Forkserver
from switchgnn.training.base.options import TrainingOptions, check_device
from switchgnn.training.data.load import NEED_PYTORCH, check_name
from switchgnn.training.data.partition import machines_of

if TYPE_CHECKING:
    from switchgnn.jobs.train import Planned, TrainJob
    from switchgnn.planner.costs.machine import MeasuredCosts
    from switchgnn.training.data.dataset import Dataset

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: switchgnn train --data karate --workers 2 --epochs 3")
@with_short_help(*COMMON)
def train(context: typer.Context, asked: TrainCommandOptions, config: ConfigOption = None) -> None:
    """Train a GNN, its neighbour sums made in the switch or by hosts.

    Every worker holds a part of the graph. Each layer adds up local neighbours
    with PyTorch Geometric and remote ones through the transport, forward and
    backward, so the losses are those of one machine. Without --transport, the
    transport that is predicted to be fastest is used. If you give several, the
    same training runs over each, and a table compares them. Transports other
    than switch use only --partition and --assignment of the strategies; g3 has
    its own partition by default.
    """
    chosen, output = asked.over.chosen(), asked.output
    asked.check(chosen)
    network = _network(asked)
    # Errors in data sets come before the import of PyTorch, which takes seconds.
    early = asked.data.edges is not None or check_name(asked.data.data) not in NEED_PYTORCH
    dataset = _load(asked, network) if early else None
    forkserver = context.with_resource(training_forkserver())
    check_device(asked.training.device)
    job = _job(asked, network)
    end_like_interrupted()
    recordings = [
        context.with_resource(
            recordings_in(
                output.pcap if each.networked else None,
                job.workers,
                job.leaf_spine,
                inside=each.name if len(chosen) > 1 else "",
            )
        )
        for each in chosen
    ]
    dataset = dataset or _load(asked, network)
    networked = job.cut(dataset) if any(each.networked for each in chosen) else dataset
    if not _check_model(job, dataset, asked.training, chosen) and AUTO in chosen:
        typer.echo("auto takes host: layers need the rows of neighbours, not only sums.", err=True)
        if asked.over.adapt:
            raise SwitchGNNError("--adapt needs several paths: these layers have one, host.")
        chosen = [HOST if each is AUTO else each for each in chosen]
    reports: list[TrainReport] = []
    epochs = asked.training.epochs
    title = f"train {asked.data.title} over {Amount(asked.workers):worker}"
    with output.page.looked_at(title, epochs=epochs) as observer:
        for each, kept in zip(chosen, recordings, strict=True):
            report = _train_over(
                *(asked, replace(job, recordings=kept), each),
                *(networked if each.networked else dataset, forkserver, observer),
            )
            reports.append(report)
            if output.as_json:
                typer.echo(json.dumps({"event": "finished", **report.to_dict()}))
        observer.done(f"All {len(reports[-1].losses)} epochs are done.")
    drawn = [] if asked.plots is None else draw_plots(reports, asked.plots)
    if not output.as_json:
        _show(reports, drawn, recordings)


def _network(asked: TrainCommandOptions) -> NetworkJob:
    ports = machines_of(asked.workers, asked.workers_per_machine)
    fields = asked.network.job_fields(ports)
    if fields["target"] == Target.TOFINO:
        _refuse_for_tofino(asked)
    fields["slots"] = asked.strategies.slots or program_of(fields["target"]).slots
    job = NetworkJob(
        **fields,
        request=asked.strategies.request(fields["leaf_spine"]),
        metrics=find_metrics(asked.output.metrics, ports),
    )
    job.choose_fabric()
    return job


def _refuse_for_tofino(asked: TrainCommandOptions) -> None:
    narrow = asked.training.compression.of_rows(0).active or asked.over.sampling < 1
    if narrow and any(each.in_switch or each is AUTO for each in asked.over.chosen()):
        raise SwitchGNNError(
            "The program for a Tofino 2 adds whole rows of 32 bits: leave out --sampling, --cache "
            "and --bits, or take another --target, such as embedded."
        )


def _load(asked: TrainCommandOptions, network: NetworkJob) -> "Dataset":
    data, assignment = asked.data.load(asked.seed), network.request.load_assignment()
    if any(each.networked for each in asked.over.chosen()):
        check_workers(data.graph, asked.workers)
        if assignment is not None:
            check_assignment(data.graph, network.workers, assignment)
    return data


def _job(asked: TrainCommandOptions, network: NetworkJob) -> "TrainJob":
    from switchgnn.jobs.train import SKEW, TrainJob  # noqa: PLC0415
    from switchgnn.training.train_worker import TrainTask  # noqa: PLC0415
    from switchgnn.training.trainer import Training  # noqa: PLC0415

    training, over = asked.training, asked.over
    shape = training.shape()
    # With sampling the sums change, as each epoch draws another sample.
    precompute = training.precompute and over.sampling == 1
    options = replace(training.options(shape, asked.seed), precompute=precompute)
    return TrainJob(
        **vars(network),
        per_machine=asked.workers_per_machine,
        task=TrainTask(
            training=Training(
                *(shape, options, over.bins(), training.device, training.compression)
            ),
            pace=asked.network.pace(skew=SKEW),
            sampling=over.sampling,
            mtu=over.mtu,
            phases=over.phases,
        ),
    )


def _check_model(
    job: "TrainJob", data: "Dataset", training: TrainingOptions, chosen: list[TransportKind]
) -> bool:
    """Refuse what cannot be trained over all transports; return whether all layers are sums."""
    from switchgnn.training.layers.check import check_own_model  # noqa: PLC0415
    from switchgnn.training.layers.models import build_model, check_layers  # noqa: PLC0415
    from switchgnn.training.layers.pyg_layers import templates_removed  # noqa: PLC0415

    shape, features = job.task.training.model, data.features.shape[1]
    weighted = data.graph.weights is not None
    shape.check_weights(weighted=weighted)
    if weighted and any(each.binned for each in chosen):
        raise SwitchGNNError(
            f"--transport {G3.name} adds rows up as they are: drop edge weights with "
            "--ignore-weights, or take another transport."
        )
    processes = job.processes if any(each.networked for each in chosen) else 1
    whole = job.task.sampling == 1 and job.per_machine == 1 and not training.compression.active
    copies = whole and all(each.copies or each is AUTO for each in chosen)
    training.check_size(shape, data.vertices, features, data.classes, processes)
    with templates_removed():
        sums = check_layers(build_model(shape, features, data.classes), copies=copies)
    if processes > 1 and not training.unchecked:
        facts = {"undirected": data.undirected, "weighted": weighted}
        check_own_model(shape, features, data.classes, **facts)
    return sums


def _train_over(
    asked: TrainCommandOptions,
    job: "TrainJob",
    transport: TransportKind,
    data: "Dataset",
    forkserver: Forkserver,
    observer: RunObserver,
) -> TrainReport:
    from switchgnn.jobs.train import plan_of, predicted_reduce, run_training  # noqa: PLC0415

    name, output, auto = transport.name, asked.output, transport is AUTO
    job = replace(job, task=replace(job.task, transport=SWITCH.name if auto else name))
    predicted = None
    with (
        told_aloud(verbose=output.logs.verbose),
        display.Epochs(
            plain_console(stderr=True),
            name,
            asked.training.epochs,
            checkpoint=asked.training.checkpoint,
            as_json=output.as_json,
        ) as shown,
        ExitStack() as stack,
    ):
        listeners: list[EpochListener] = [shown.epoch]
        if asked.tensorboard is not None:
            listeners.append(stack.enter_context(TrainEvents(asked.tensorboard, name)).epoch)
        if auto:
            job, data, predicted = _decided(asked, job, data, shown, forkserver)
        elif asked.over.adapt:
            planned = plan_of(job, data, lambda what: shown.step(what, 0, 0))
            job = _adapting(asked, job, data, planned, name)
        taken = job.task.adapt.first if job.task.adapt else job.task.transport
        shown.takes(taken)
        by = asked.over.reduce
        if by is None or (by.bits and not job.transport.in_switch):
            by = predicted_reduce(job, data)
        job = replace(job, task=replace(job.task, reduce=by))

        def listen(event: dict[str, Any]) -> None:
            for listener in listeners:
                listener(event)

        log_dir = output.logs.log_dir
        report = run_training(
            job,
            data,
            shown.step,
            listen,
            forkserver=forkserver,
            log_dir=None if log_dir is None else log_dir / name,
            observer=observer,
            note=shown.note,
        )
    saving = asked.training.compression.named or None
    return replace(report, transport=taken, predicted_seconds=predicted, compression=saving)


def _adapting(
    asked: TrainCommandOptions,
    job: "TrainJob",
    data: "Dataset",
    planned: "Planned",
    first: str,
    measured: "MeasuredCosts | None" = None,
) -> "TrainJob":
    """Return a job whose paths change with observed times, as `--adapt` asks for."""
    from switchgnn.jobs.train import predict_paths  # noqa: PLC0415

    over = replace(job, task=replace(job.task, transport=SWITCH.name), planned=planned)
    kept = asked.over.reduce is not None
    paths = predict_paths(over, data, planned[1], first, measured, keep_reduce=kept)
    return replace(over, task=replace(over.task, adapt=paths))


def _decided(
    asked: TrainCommandOptions,
    job: "TrainJob",
    data: "Dataset",
    shown: display.Epochs,
    forkserver: Forkserver,
) -> tuple["TrainJob", "Dataset", dict[str, float]]:
    """Return job and data for the transport that `auto` chooses, and the predicted seconds."""
    from switchgnn.jobs.measured import measured_here  # noqa: PLC0415
    from switchgnn.jobs.train import plan_of, predict_transport  # noqa: PLC0415

    if asked.strategies.strategy is None:
        job = replace(job, request=replace(job.request, preset=PLAN_AUTO))

    def tell(what: str) -> None:
        shown.step(what, 0, 0)

    if switch_only := asked.strategies.switch_only():
        shown.note(f"auto takes switch: only the switch uses {switch_only}.")
        if asked.over.adapt:
            job = _adapting(asked, job, data, plan_of(job, data, tell), SWITCH.name)
        return job, data, {}
    measured = measured_here(job, forkserver, tell)
    found = predict_transport(job, data, tell, measured, cuts=not asked.over.adapt)
    shown.note(found.why)
    task = replace(job.task, transport=found.chosen.name)
    job = replace(found.job, task=task, planned=found.planned)
    if found.whole is not None and asked.over.adapt:
        job = _adapting(asked, job, data, found.whole, found.chosen.name, measured)
    return job, found.data, dict(found.seconds)


def _show(reports: list[TrainReport], drawn: list[Path], recordings: list[Recordings]) -> None:
    console = plain_console()
    first = reports[0]

    def say(line: str) -> None:
        console.print(line, soft_wrap=True, highlight=False)

    say(
        f"{first.dataset}: {Amount(first.vertices):vertex}, {Amount(first.edges):directed edge}; "
        f"{first.model}, {first.workers_text}, {Amount(len(first.losses)):epoch}"
    )
    say(f"Ran on: {first.ran_on()}")
    for report in reports:
        if words := report.strategies:
            say(f"Plan of {report.transport}: {words}.")
    console.print(display.transports_table(reports))
    if (links := display.links_table(reports)) is not None:
        console.print(links)
    for report in reports:
        if report.leaf_spine is not None:
            what = f"Bytes of {report.transport}"
            console.print(leaf_spine_table(report.leaf_spine, what, "counted, with gradients"))
    for path in drawn:
        say(f"Drawn: {path}")
    for kept in recordings:
        if kept.files:
            say(captured_line(kept.files))
    for line in (
        display.kept_line(reports),
        *display.path_lines(reports),
        *display.saving_lines(reports),
        display.closing_line(reports),
        *display.verdict_lines(reports),
    ):
        if line is not None:
            say(line)
