"""Jobs on disk: a plan, each worker's part of the data set, and what all of them share."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from switchgnn.base import files
from switchgnn.base.records import RecordError, make_record, parse_json, record_digest
from switchgnn.host.direct.kinds import backward_file
from switchgnn.host.registry import OF_JOBS, SWITCH, TransportKind, transport_kind
from switchgnn.p4src import load_program
from switchgnn.planner import Direction, Graph, Plan, boundary_edges, read_manifest, write_plan
from switchgnn.planner.arguments import Left
from switchgnn.planner.base.lanes import USUAL_WIDTH
from switchgnn.planner.build import build_resolved
from switchgnn.planner.costs import forecast
from switchgnn.planner.costs.seconds import NetworkModel
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.presets import PlanContext, PlanRequest, resolve_strategies
from switchgnn.training.base.errors import DatasetError, JobError
from switchgnn.training.data import partition
from switchgnn.training.data.dataset import Dataset
from switchgnn.training.data.load import dataset_from_pyg, load_dataset, split_of_indices
from switchgnn.training.data.weights import told_cost

JOB_FILE, PLAN_FOLDER, PARTS_FOLDER = "job.json", "plan", "parts"
FORMAT, VERSION = "switchgnn-job", 8
_MOST_BYTES = 1 << 20
_INPUTS = ("x", "edge_index")
_LABELS = ("y", "train_mask", "val_mask", "test_mask")
_OGB_SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Job:
    """What the workers of a job share."""

    format: str
    version: int
    data: str  # the name of the data set
    workers: int
    workers_per_machine: int  # those of a machine are one worker of the plan
    leaf_of_worker: tuple[int, ...]  # the leaf of each worker in the plan; empty for a star
    spines: int  # the number of spines; 0 in a star
    # of the whole graph
    vertices: int
    edges: int
    features: int  # the length of a row
    classes: int  # 0: no vertex has a label, or is in a split
    multilabel: bool  # whether a vertex may have any number of classes
    # the numbers of vertices of each split in the whole graph
    train: int
    validation: int
    test: int
    plan: str  # the digest of the plan
    parts: tuple[str, ...]  # SHA-256 in hex of each worker's part
    # SHA-256 in hex of the files of the rows that machines send each other, by name
    schedules: Mapping[str, str]
    auto: str  # the transport that is predicted to be the fastest, or empty
    # what edge weights cost, whether the switch pays off, and the reason for `auto`, where
    # exchanges were predicted; or empty
    why: str
    digest: str  # SHA-256 in hex over the canonical JSON of all fields but this one


def write_job(
    data: Any,  # noqa: ANN401 - PyG has no types
    workers: int,
    folder: str | Path,
    *,
    workers_per_machine: int = 1,
    name: str = "data",
    request: PlanRequest | None = None,
    slots: int | None = None,
    leaves: int = 0,
    spines: int = 1,
    seed: int = 0,
    left: Left | None = None,
    network: NetworkModel | None = None,
    width: int = USUAL_WIDTH,
    copies: bool = False,
    transports: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    writing: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Job:
    """Plan a training and write the files that its workers need, all of them or none.

    Args:
        data: a ``Data`` of PyTorch Geometric, a PyG or OGB data set, or the name or file of a
            data set as for `load_dataset`. A ``Data`` with neither `y` nor masks gives a job
            without labels, with 0 classes.
        workers: the number of workers.
        folder: new, empty, or an older job, which is replaced as a whole.
        workers_per_machine: how many of them are on each machine and share its port.
        name: the name of a ``Data`` in messages and reports.
        request: the strategies; None: the default ones.
        slots: the aggregators that a block may use; None: all of the program's.
        leaves: the number of switches that share the workers; 0: a star.
        spines: the number of switches above the leaves.
        seed: of the partition, the blocks and the order.
        left: the destinations that the plan leaves to the hosts, as for `build_plan`; None: those
            that the strategy `auto` leaves, which needs a network.
        network: the network of the predicted exchanges, for the strategy and the transport `auto`.
        width: elements of a row in the predicted exchanges.
        copies: whether workers know the edges between them, 16 bytes each, which layers need that
            are no sums, such as ``GATConv``.
        transports: those that workers may take besides `switch`; `auto`: the one of `switch`,
            `host-partial` and `host` that is predicted to be the fastest, in a star on `network`
            (None: a ``NetworkModel()``) with rows of `width`.
        progress: called with a few words at the start of each step.
        writing: makes the context that is entered while files are written.

    Returns:
        The job.

    Raises:
        JobError: the data is incomplete, or the folder holds other files or cannot be written.
        DatasetError: the data is inconsistent.
        PlannerError: no plan for these options, or labels that are not classes.
        ScheduleError: a schedule cannot be written.
        TransportError: there is no such transport.
    """
    target = Path(folder).resolve()
    known = {JOB_FILE, PLAN_FOLDER, PARTS_FOLDER} if (target / JOB_FILE).exists() else set()
    if reason := files.reason_to_keep(target, "a job", known.__contains__):
        raise JobError(reason)
    asked = [transport_kind(each, OF_JOBS) for each in transports]
    taken = {SWITCH.name, *(each.name for each in asked if not each.predicted)}
    dataset = _dataset_of(data, name)
    request, program = request or PlanRequest(), load_program()
    machines = partition.machines_of(workers, workers_per_machine)
    leaf_spine = even_leaf_spine(machines, leaves, spines) if leaves else None
    context = PlanContext(machines, slots or program.slots, leaf_spine=leaf_spine)
    dataset = dataset.cut_for(request, machines, seed)
    if dataset.cut is not None and (copies or machines != workers):
        raise JobError("A vertex cut has no copies of rows, and one worker on each machine.")
    context, assignment = forecast.choose_lanes(
        request, dataset.cut or dataset.graph, context, {USUAL_WIDTH: 1.0}, seed
    )
    choice = resolve_strategies(request, dataset.cut or dataset.graph, context)
    graph, assignment = dataset.exchanged(assignment)
    made: dict[str, Any] = {
        "program": program.digest,
        "seed": seed,
        "directions": "both",
        "assignment": assignment,
        "progress": progress,
    }
    star = forecast.StarForecast(
        network or NetworkModel(), {each: {width: 1.0} for each in Direction}
    )
    if choice.leaves and network is not None and left is None:
        found = forecast.build_auto(graph, choice, context, star, **made)
        plan, both = found.plan, tuple(Direction)
        served = forecast.share_served(plan, boundary_edges(graph, plan.assignment), both)
        why = forecast.verdict(
            forecast.transport_of(plan, both), found.seconds, served, network.mtu, both=True
        )
    else:
        why = ""
        plan = build_resolved(graph, choice, context, left=left, **made)
    auto = ""
    if any(each.predicted for each in asked):
        edges = boundary_edges(graph, plan.assignment)
        ways = {} if leaf_spine else forecast.predict_ways(plan, edges, star)
        auto, told = _quickest(ways)
        why += told
        taken.add(auto)
    try:
        of_vertices = plan.assignment[: dataset.vertices]
        cost = told_cost(dataset.graph, of_vertices, dataset.factors)
        with writing(), files.replacing(target) as new:
            write_plan(plan, new / PLAN_FOLDER)
            parts = partition.split_machines(dataset.graph, of_vertices, workers_per_machine, seed)
            each, where = workers_per_machine, new / PARTS_FOLDER
            partition.write_partitions(dataset, parts, where, each, incoming=copies)
            schedules = _write_schedules(graph, plan, new / PARTS_FOLDER, taken)
            job = Job(
                format=FORMAT,
                version=VERSION,
                data=dataset.name,
                workers=workers,
                workers_per_machine=workers_per_machine,
                leaf_of_worker=leaf_spine.leaf_of_worker if leaf_spine else (),
                spines=leaf_spine.spines if leaf_spine else 0,
                vertices=dataset.vertices,
                edges=len(dataset.graph.indices),
                features=dataset.features.shape[1],
                classes=dataset.classes,
                multilabel=dataset.multilabel,
                train=int(dataset.train.sum()),
                validation=int(dataset.validation.sum()),
                test=int(dataset.test.sum()),
                plan=plan.manifest.digest,
                parts=tuple(
                    _digest(new / PARTS_FOLDER / partition.partition_file(worker))
                    for worker in range(workers)
                ),
                schedules=schedules,
                auto=auto,
                why=" ".join(filter(None, (cost, why.strip()))),
                digest="",
            )
            job = replace(job, digest=record_digest(job))
            (new / JOB_FILE).write_text(json.dumps(asdict(job), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        why_not = files.why_not_written(error, target)
        raise JobError(f"Cannot write the job {folder}: {why_not}.") from error
    return job


def _quickest(ways: Mapping[str, float]) -> tuple[str, str]:
    """Return the transport with the least predicted seconds, and a sentence."""
    auto = min(ways, key=ways.__getitem__, default=SWITCH.name)
    told = ", ".join(f"{forecast.told_seconds(ways[way])} ({way})" for way in ways)
    told = f"predicted to take {told}" if told else "not predicted over leaves and spines"
    return auto, f" The transport auto is {auto}: exchanges of both directions are {told}."


def _dataset_of(source: Any, name: str) -> Dataset:  # noqa: ANN401 - PyG has no types
    if isinstance(source, Dataset):
        return source
    if isinstance(source, str | Path):
        return load_dataset(str(source))
    indices = None
    if not hasattr(source, "edge_index") and hasattr(source, "__getitem__"):
        kind = type(source).__name__
        name = getattr(source, "name", None) or kind.lower()
        indices = source.get_idx_split() if hasattr(source, "get_idx_split") else None
        graphs = len(source) if hasattr(source, "__len__") else 1
        if isinstance(source, Mapping) or hasattr(source, "to_homogeneous") or graphs != 1:
            raise JobError(
                f"The data set {name} is a {kind} of {graphs}: it must hold one graph, a Data of "
                "PyTorch Geometric (HeteroData has to_homogeneous(), a dict Data.from_dict())."
            )
        source = source[0]
    if missing := [each for each in _OGB_SPLITS if indices is not None and each not in indices]:
        raise JobError(f"The data set {name} has no split {missing[0]!r}.")
    needed = (*_INPUTS, *(_LABELS if indices is None else _LABELS[:1]))
    missing = [each for each in needed if getattr(source, each, None) is None]
    if missing and (indices is not None or missing != list(_LABELS)):
        unlabelled = f"; one without labels has no {', '.join(_LABELS)}" if indices is None else ""
        raise JobError(
            f"The data set {name} has no {missing[0]}: it must be a Data of PyTorch Geometric with "
            f"{', '.join(needed)}{unlabelled}."
        )
    split = None if indices is None else split_of_indices(indices, len(source.y))
    return dataset_from_pyg(source, name, split)


def read_job(folder: str | Path) -> Job:
    """Read ``job.json`` of a job.

    Raises:
        JobError: the folder holds no job, one of another version, or a damaged one.
    """
    path = Path(folder) / JOB_FILE
    try:
        data = files.read_bounded(path, _MOST_BYTES)
    except OSError as error:
        raise JobError(f"{folder} holds no job: cannot read {path}: {error.strerror}.") from error
    try:
        fields = parse_json(data)
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise RecordError(f"its format is not {FORMAT}")
        if fields.get("version") != VERSION:
            raise RecordError(f"its version is not {VERSION}")
        job = make_record(Job, fields)
        if len(job.parts) != job.workers:
            raise RecordError(f"it has {len(job.parts)} parts")
        if job.digest != record_digest(job):
            raise RecordError("it was changed after it was written")
    except (RecordError, DatasetError) as error:
        raise JobError(f"{path} is not a valid job, write it again: {error}.") from error
    return job


def read_part(
    folder: str | Path, job: Job, worker: int, kind: TransportKind = SWITCH
) -> partition.Partition:
    """Read a worker's part, if it, the plan and its schedules of a transport are the job's."""
    plan = read_manifest(Path(folder) / PLAN_FOLDER)
    if plan.digest != job.plan:
        raise JobError(f"The plan in {folder} is not the job's: copy the whole job again.")
    parts = Path(folder) / PARTS_FOLDER
    digests = {partition.partition_file(worker): job.parts[worker]}
    own = [each.name for each in _both(parts, kind, worker // job.workers_per_machine)]
    digests |= {each: job.schedules[each] for each in own if each in job.schedules}
    for file, expected in digests.items():
        try:
            digest = _digest(parts / file)
        except OSError as error:
            raise JobError(
                f"Worker {worker} has no part in {folder}: cannot read {parts / file}: "
                f"{error.strerror}. Copy the whole job again, or its own part."
            ) from error
        if digest != expected:
            raise JobError(f"{parts / file} is not the job's: copy the whole job again.")
    return partition.read_partition(parts, worker)


def job_schedule(folder: str | Path, job: Job, machine: int, kind: TransportKind) -> Path | None:
    """Return the file of a machine's forward schedule; None where it has none."""
    forward, _ = _both(Path(folder) / PARTS_FOLDER, kind, machine)
    return forward if forward.name in job.schedules else None


def job_transport(folder: str | Path, job: Job, name: str) -> TransportKind:
    """Return the transport that a job's workers take for a name.

    Raises:
        TransportError: there is no such transport.
        JobError: the job was not written for it.
    """
    kind = transport_kind(name, OF_JOBS)
    if kind.predicted and job.auto:
        kind = transport_kind(job.auto)
    if kind.predicted or (kind.between_hosts and job_schedule(folder, job, 0, kind) is None):
        raise JobError(
            f"The job {folder} was not written for the transport {name}: write it again with "
            f"`switchgnn plan --parts --transport {name}` or write_job(..., transports=[{name!r}])."
        )
    if kind.binned and job.workers_per_machine > 1:
        raise JobError(f"The transport {name} is for one worker per machine: take another one.")
    return kind


def _write_schedules(graph: Graph, plan: Plan, parts: Path, names: Iterable[str]) -> dict[str, str]:
    written: dict[str, str] = {}
    for kind in map(transport_kind, sorted(names)):
        both = [_both(parts, kind, machine) for machine in range(plan.manifest.workers)]
        kind.write(graph, plan, [forward for forward, _ in both])
        written |= {each.name: _digest(each) for pair in both for each in pair if each.exists()}
    return written


def _both(parts: Path, kind: TransportKind, machine: int) -> tuple[Path, Path]:
    forward = parts / f"{kind.name}-{machine}.safetensors"
    return forward, backward_file(forward)


def _digest(path: Path) -> str:
    return hashlib.sha256(files.read_regular(path)).hexdigest()
