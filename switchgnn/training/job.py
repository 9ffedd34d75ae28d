# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs on disk: a plan, each worker's part of the data set, and what all of them share."""

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.files import open_regular, replacing
from switchgnn.base.full_disk import why_not_written
from switchgnn.base.records import RecordError, make_record, parse_json
from switchgnn.host.direct.kinds import backward_file
from switchgnn.host.mixed import write_left_schedules
from switchgnn.p4src import load_program
from switchgnn.planner.auto import AutoPlan, build_auto
from switchgnn.planner.build import Left
from switchgnn.planner.chosen import Asked, build_chosen, choose_asked
from switchgnn.planner.costs.forecast import StarForecast, share_served, verdict, way_of
from switchgnn.planner.costs.seconds import Network
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.graphs.graph import Graph, graph_from_edges
from switchgnn.planner.lanes import USUAL_WIDTH
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.plan.files import read_manifest, write_plan
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import PAPER, Situation
from switchgnn.training.data.dataset import Dataset, Split, dataset_from_graph
from switchgnn.training.data.load import load_dataset
from switchgnn.training.errors import JobError
from switchgnn.training.partition import (
    SHARED_FILE,
    Partition,
    partition_file,
    read_partition,
    write_partitions,
)

_TENSORS = ("x", "edge_index", "y")
_MASKS = ("train_mask", "val_mask", "test_mask")
# As OGB calls what the masks say.
_SPLITS = ("train", "valid", "test")


def dataset_of(source: Any, *, name: str = "data") -> Dataset:  # noqa: ANN401 - PyG has no types
    """Return a data set.

    Args:
        source: a ``Data`` of PyTorch Geometric with features, labels and masks; a PyG data set
            with one of them, or an OGB one, which has splits in place of masks; or a name, or a
            file, that `switchgnn train --data` takes.
        name: what messages call a ``Data``.

    Raises:
        JobError: it is none of these.
        DatasetError: it lacks something, or does not belong together.
    """
    if isinstance(source, Dataset):
        return source
    if isinstance(source, str | Path):
        return load_dataset(str(source))
    if hasattr(source, "edge_index") or not hasattr(source, "__getitem__"):
        return _of_pyg(source, name, None)
    name = getattr(source, "name", None) or type(source).__name__.lower()
    found = source[0]
    split = getattr(source, "get_idx_split", None)
    return _of_pyg(found, name, None if split is None else _masks(split(), found, name))


def _masks(split: Mapping[str, Any], data: Any, name: str) -> list[NDArray[np.bool_]]:  # noqa: ANN401
    """Return the masks of an OGB data set, which names the vertices of each split."""
    missing = [each for each in _SPLITS if each not in split]
    if missing:
        raise JobError(f"The data set {name} has no split {missing[0]!r}.")
    masks = []
    for each in _SPLITS:
        mask = np.zeros(len(data.y), dtype=np.bool_)
        mask[np.asarray(split[each])] = True
        masks.append(mask)
    return masks


def _of_pyg(data: Any, name: str, masks: list[NDArray[np.bool_]] | None) -> Dataset:  # noqa: ANN401
    needs = _TENSORS if masks is not None else (*_TENSORS, *_MASKS)
    missing = [each for each in needs if getattr(data, each, None) is None]
    if missing:
        raise JobError(
            f"The data set {name} has no {missing[0]}: it must be a Data of PyTorch Geometric with "
            f"{', '.join(needs)}."
        )
    source, destination = data.edge_index.cpu().numpy()
    labels = data.y.cpu().numpy()
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    graph = graph_from_edges(source, destination, name=name, vertices=len(labels), directed=True)
    if masks is None:
        masks = [getattr(data, each).cpu().numpy() for each in _MASKS]
    return dataset_from_graph(
        graph,
        features=data.x.cpu().numpy().astype(np.float32, copy=False),
        labels=labels.astype(np.float32 if labels.ndim == 2 else np.int64, copy=False),
        split=Split(*masks),
    )


JOB_FILE, PLAN_FOLDER, PARTS_FOLDER = "job.json", "plan", "parts"
FORMAT, VERSION = "switchgnn-job", 3
_MOST_BYTES = 1 << 20
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Job:
    """What the workers of a job share.

    Attributes:
        format, version: FORMAT and VERSION.
        data: the name of the data set.
        workers: their number.
        leaf_of_worker: the leaf of each worker that the plan is for; none: a star.
        spines: the number of spines; 0 in a star.
        vertices, edges: of the whole graph.
        features: the length of a row.
        classes: their number.
        multilabel: whether a vertex may have any number of them.
        train, validation, test: how many vertices of the whole graph do each.
        plan: the digest of the plan.
        parts: SHA-256 in hex of each worker's part.
        shared: SHA-256 in hex of what the parts share.
        schedules: SHA-256 in hex of each worker's schedules of what the plan leaves to the hosts,
            forward and backward, worker by worker; empty where it leaves nothing.
        why: whether the switch pays, where exchanges were predicted; else empty.
        digest: SHA-256 in hex over the canonical JSON of all fields but this one.
    """

    format: str
    version: int
    data: str
    workers: int
    leaf_of_worker: tuple[int, ...]
    spines: int
    vertices: int
    edges: int
    features: int
    classes: int
    multilabel: bool
    train: int
    validation: int
    test: int
    plan: str
    parts: tuple[str, ...]
    shared: str
    schedules: tuple[str, ...]
    why: str
    digest: str


def write_job(
    data: Any,  # noqa: ANN401 - PyG has no types
    workers: int,
    folder: str | Path,
    *,
    name: str = "data",
    asked: Asked | None = None,
    slots: int | None = None,
    leaves: int = 0,
    spines: int = 1,
    seed: int = 0,
    left: Left | None = None,
    network: Network | None = None,
    width: int = USUAL_WIDTH,
    progress: Callable[[str], None] | None = None,
    writing: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Job:
    """Plan a training and write down what its workers need; readers see all of it or nothing.

    Args:
        data: a ``Data`` of PyTorch Geometric, a PyG or OGB data set, a name or a file, as
            `dataset_of` takes it.
        workers: their number.
        folder: new, empty, or an older job, which is replaced as a whole.
        name: what messages and reports call a ``Data``.
        asked: the strategies; None: those of the paper.
        slots: the aggregators that a block may use; None: all of the program's.
        leaves: how many switches the workers are divided over; 0: a star.
        spines: how many switches are above the leaves.
        seed: of the partition, the blocks and the order.
        left: the destinations that the plan leaves to the hosts, as for `build_plan`; None: those
            that the strategy `auto` leaves, which needs a network.
        network: what exchanges are predicted on, for the strategy `auto`.
        width: numbers of a row in the exchanges that are predicted.
        progress: called with a few words at the start of each step.
        writing: makes what is entered while files are written.

    Returns:
        What was written.

    Raises:
        JobError: the data is none, the folder holds something else, or cannot be written.
        DatasetError: the data does not belong together.
        PlannerError: no plan for these options.
        ScheduleError: a schedule cannot be written.
    """
    target = Path(folder).resolve()
    _check_target(target)
    dataset = dataset_of(data, name=name)
    asked = asked or Asked(PAPER)
    program = load_program()
    leaf_spine = even_leaf_spine(workers, leaves, spines) if leaves else None
    situation = Situation(
        workers,
        slots or program.slots,
        leaf_spine=leaf_spine,
        lanes=asked.lanes_for([USUAL_WIDTH], slots or program.slots),
    )
    choice = choose_asked(asked, dataset.graph, situation)
    made: dict[str, Any] = {
        "program": program.digest,
        "seed": seed,
        "directions": "both",
        "assignment": asked.load_assignment(),
        "progress": progress,
    }
    if choice.leaves and network is not None and left is None:
        forecast = StarForecast(network, {each: {width: 1.0} for each in Direction})
        found = build_auto(dataset.graph, choice, situation, forecast, **made)
        plan, why = found.plan, _why(dataset.graph, found, network.mtu)
    else:
        why = ""
        plan = build_chosen(dataset.graph, choice, situation, left=left, **made)
    try:
        with writing(), replacing(target) as new:
            write_plan(plan, new / PLAN_FOLDER)
            write_partitions(dataset, plan.assignment, new / PARTS_FOLDER)
            schedules = _write_schedules(dataset.graph, plan, new / PARTS_FOLDER)
            job = Job(
                format=FORMAT,
                version=VERSION,
                data=dataset.name,
                workers=workers,
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
                    _digest(new / PARTS_FOLDER / partition_file(worker))
                    for worker in range(workers)
                ),
                shared=_digest(new / PARTS_FOLDER / SHARED_FILE),
                schedules=schedules,
                why=why,
                digest="",
            )
            job = replace(job, digest=_job_digest(job))
            (new / JOB_FILE).write_text(json.dumps(asdict(job), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise JobError(f"Cannot write the job {folder}: {why_not_written(error, target)}.") from (
            error
        )
    return job


def _why(graph: Graph, found: AutoPlan, mtu: int) -> str:
    """Return whether the switch pays, in one sentence."""
    plan, directions = found.plan, tuple(Direction)
    served = share_served(plan, boundary_edges(graph, plan.assignment), directions)
    return verdict(way_of(plan, directions), found.seconds, served, mtu, both=True)


def read_job(folder: str | Path) -> Job:
    """Read what the workers of a job share.

    Raises:
        JobError: the folder holds no job, one of another version, or a damaged one.
    """
    path = Path(folder) / JOB_FILE
    try:
        with open_regular(path) as file:
            data = file.read(_MOST_BYTES)
    except OSError as error:
        raise JobError(f"{folder} holds no job: cannot read {path}: {error.strerror}.") from error
    try:
        told = parse_json(data)
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise RecordError(f"its format is not {FORMAT}")
        if told.get("version") != VERSION:
            raise RecordError(f"its version is not {VERSION}")
        job = make_record(Job, told)
        if len(job.parts) != job.workers:
            raise RecordError(f"it has {len(job.parts)} parts")
        if len(job.schedules) not in (0, 2 * job.workers):
            raise RecordError(f"it has {len(job.schedules)} schedules")
        if job.digest != _job_digest(job):
            raise RecordError("it was changed after it was written")
    except RecordError as error:
        raise JobError(f"{path} describes no job, write it again: {error}.") from error
    return job


def check_part(folder: str | Path, job: Job, worker: int) -> None:
    """Check that a worker holds the plan and the part that the job was written with.

    Args:
        folder: of the job, on the worker's machine; it may lack the parts of other workers.
        job: what is in it.
        worker: whose part is checked.

    Raises:
        JobError: it does not; copies of a job on several machines may differ.
        PlannerError: its folder holds no plan.
    """
    plan = read_manifest(Path(folder) / PLAN_FOLDER)
    if plan.digest != job.plan:
        raise JobError(
            f"The plan in {folder} is another one than the job's: copy the whole job again."
        )
    parts = Path(folder) / PARTS_FOLDER
    files = {SHARED_FILE: job.shared, partition_file(worker): job.parts[worker]}
    if job.schedules:
        own = job.schedules[2 * worker : 2 * worker + 2]
        files |= {path.name: digest for path, digest in zip(_both(parts, worker), own, strict=True)}
    for file, expected in files.items():
        try:
            digest = _digest(parts / file)
        except OSError as error:
            raise JobError(
                f"Worker {worker} has no part in {folder}: cannot read {parts / file}: "
                f"{error.strerror}. Copy the whole job again, or its own part."
            ) from error
        if digest != expected:
            raise JobError(
                f"{parts / file} is another one than the job's: copy the whole job again."
            )


def job_schedule(folder: str | Path, job: Job, worker: int) -> Path | None:
    """Find a worker's schedule.

    Args:
        folder: of the job.
        job: what is in it.
        worker: whose schedule it is.

    Returns:
        Its file; None where the plan leaves nothing to the hosts.
    """
    return _both(Path(folder) / PARTS_FOLDER, worker)[0] if job.schedules else None


def read_part(folder: str | Path, job: Job, worker: int) -> Partition:
    """Check and read a worker's part of the data set.

    Args:
        folder: of the job, as for `check_part`.
        job: what is in it.
        worker: whose part is read.

    Returns:
        The part; large arrays are read when they are used.

    Raises:
        JobError: as `check_part`, or the job says something else than its parts.
        DatasetError: the part is damaged.
        PlannerError: as `check_part`.
    """
    check_part(folder, job, worker)
    part = read_partition(Path(folder) / PARTS_FOLDER, worker)
    pairs = {
        "data": (job.data, part.name),
        "workers": (job.workers, part.workers),
        "vertices": (job.vertices, part.total_vertices),
        "features": (job.features, part.features.shape[1]),
        "classes": (job.classes, part.classes),
        "multilabel": (job.multilabel, part.multilabel),
        "train": (job.train, part.total_train),
        "validation": (job.validation, part.total_validation),
        "test": (job.test, part.total_test),
    }
    for name, (told, found) in pairs.items():
        if told != found:
            raise JobError(
                f"The parts in {folder} have another {name} ({found}) than {JOB_FILE} "
                f"({told}): write the job again."
            )
    return part


def _check_target(target: Path) -> None:
    """Refuse a folder that is not a job, or that holds other files as well."""
    if not target.exists():
        return
    if not target.is_dir():
        raise JobError(f"{target} is a file; give the name of a folder for the job.")
    known = {JOB_FILE, PLAN_FOLDER, PARTS_FOLDER}
    for path in sorted(target.iterdir()):
        if path.name not in known or not (target / JOB_FILE).exists():
            raise JobError(
                f"{target} holds {path.name}, which is not part of a job, so it is not "
                "overwritten; choose another name."
            )


def _write_schedules(graph: Graph, plan: Plan, parts: Path) -> tuple[str, ...]:
    """Write what hosts send each other, if the plan leaves them anything; return the digests."""
    if not plan.leaves_any:
        return ()
    both = [_both(parts, worker) for worker in range(plan.manifest.workers)]
    write_left_schedules(graph, plan, [forward for forward, _ in both])
    return tuple(_digest(path) for pair in both for path in pair)


def _both(parts: Path, worker: int) -> tuple[Path, Path]:
    """Return the files of a worker's schedules, forward and backward."""
    forward = parts / f"schedule-{worker}.npz"
    return forward, backward_file(forward)


def _job_digest(job: Job) -> str:
    content = asdict(job)
    del content["digest"]
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
