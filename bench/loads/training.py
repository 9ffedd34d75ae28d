"""Trainings over several transports, in turn; PyTorch is imported when one begins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from bench.line import Goal, ResultLine
from bench.machine import lacks
from bench.measure import Samples
from bench.settings import Settings
from bench.testbeds.forkserver import NewForkserver
from switchgnn.host.base.pace import Pace
from switchgnn.host.registry import SWITCH
from switchgnn.jobs.workers import ENVIRONMENT, imported_before_forks
from switchgnn.p4src import load_program
from switchgnn.planner import partition_workers
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.presets import AUTO
from switchgnn.topologies import FabricKind, Target, usual_limits
from switchgnn.topologies.mininet_fabric import mininet_missing

if TYPE_CHECKING:
    from switchgnn.jobs.train import TrainJob
    from switchgnn.jobs.train_report import TrainReport
    from switchgnn.training.data.dataset import Dataset

WORKERS = 8


@dataclass(frozen=True)
class TrainingSetting:
    """What is trained, and where."""

    graph: str  # the name of a data set
    epochs: int  # how many
    target: Target  # the switch
    fabric: FabricKind  # where it runs
    bandwidth: float | None = None  # Mbit/s of each link, or None for as fast as the machine can
    layers: int = 2  # of the GCN
    hidden: int = 32  # numbers of a hidden feature
    slots: int | None = None  # of the switch; None: all that the program has
    per_machine: int = 1  # how many workers share a port

    @property
    def words(self) -> str:
        """What is trained, on which links, for a line of the result."""
        links = "no limit" if self.bandwidth is None else f"{self.bandwidth:g} Mbit/s"
        slots = "" if self.slots is None else f", {self.slots} slots"
        model = f"{self.layers} layers of {self.hidden}"
        return f"{self.graph}, {WORKERS} workers, {model}, {self.fabric.value}, {links}{slots}"


class Trainings:
    """Trainings over some transports, each in turn as often as pairs are measured.

    Attributes:
        reports: those of each transport, by its name.
        copies: remote copies of a boundary vertex, in words.
    """

    def __init__(
        self, settings: Settings, setting: TrainingSetting, transports: Sequence[str]
    ) -> None:
        from switchgnn.training import load_dataset  # noqa: PLC0415

        data = load_dataset(setting.graph)
        self.copies = _copies(data)
        self.reports: dict[str, list[TrainReport]] = {transport: [] for transport in transports}
        for _ in range(settings.pairs):
            for transport, made in self.reports.items():
                made.append(train_over(setting, data, transport))

    def epochs(self, name: str, what: str, rival: str, most: float) -> ResultLine:
        """Compare the epochs over the switch with those over another transport."""
        ours, others = self.epoch_seconds(SWITCH.name), self.epoch_seconds(rival)
        return ResultLine(
            name, f"{what}: epoch", "s", ours, others, Goal(ratio_most=most), self.copies
        )

    def epoch_seconds(self, transport: str) -> Samples:
        """Return the seconds of an epoch over a transport, of each training."""
        made = self.reports[transport]
        return Samples(transport, tuple(report.epoch_seconds for report in made))


def lacks_packages() -> str | None:
    """Return which package of a training is missing, or None."""
    for package in ("torch", "torch_geometric"):
        if find_spec(package) is None:
            return f"needs {package} (pip install -e '.[training]')"
    return None


def lacks_training() -> str | None:
    """Return what the machine lacks for a training, or None."""
    return lacks_packages() or lacks()


def lacks_shaped_training() -> str | None:
    """Return what the machine lacks for a training in Mininet, or None."""
    return lacks_training() or mininet_missing()


def _copies(data: "Dataset") -> str:
    boundary = boundary_edges(data.graph, partition_workers(data.graph, WORKERS, seed=0))
    copies = len(boundary.host_copies()[0]) / len(boundary.vertices())
    return f"{copies:.1f} remote copies of a boundary vertex on average"


def train_over(setting: TrainingSetting, data: "Dataset", transport: str) -> "TrainReport":
    """Train over a transport, or over that which `auto` chooses, as `train` does by default."""
    from switchgnn.jobs.train import predicted_reduce  # noqa: PLC0415

    job = auto_job(setting, data) if transport == AUTO else job_of(setting, transport)
    by = predicted_reduce(job, data)
    return train(replace(job, task=replace(job.task, reduce=by)), data)


def train(job: "TrainJob", data: "Dataset") -> "TrainReport":
    """Train in processes of their own: PyTorch may have computed in this one."""
    from switchgnn.jobs.train import run_training  # noqa: PLC0415

    with NewForkserver(imported_before_forks(), ENVIRONMENT) as forkserver:
        return run_training(job, data, lambda *_: None, lambda _: None, forkserver=forkserver)


def auto_job(setting: TrainingSetting, data: "Dataset") -> "TrainJob":
    """Return what `train --transport auto` does, which may leave destinations to the hosts."""
    from switchgnn.jobs.train import predict_transport  # noqa: PLC0415
    from switchgnn.planner.presets import PlanRequest  # noqa: PLC0415

    job = replace(job_of(setting, SWITCH.name), request=PlanRequest(preset=AUTO))
    found = predict_transport(job, data, lambda _: None)
    task = replace(job.task, transport=found.chosen.name)
    return replace(job, task=task, planned=found.planned)


def job_of(setting: TrainingSetting, transport: str) -> "TrainJob":
    """Return what a training does."""
    from switchgnn.jobs.train import TrainJob  # noqa: PLC0415
    from switchgnn.planner.presets import PlanRequest  # noqa: PLC0415
    from switchgnn.training.base.options import ModelOptions, TrainOptions  # noqa: PLC0415
    from switchgnn.training.train_worker import TrainTask  # noqa: PLC0415
    from switchgnn.training.trainer import Training  # noqa: PLC0415

    shaped = setting.bandwidth is not None
    limits = usual_limits(setting.target, shaped=shaped)
    return TrainJob(
        task=TrainTask(
            transport=transport,
            training=Training(
                ModelOptions("gcn", setting.layers, setting.hidden, 0.0),
                TrainOptions(setting.epochs, weight_decay=0.0, evaluate_every=setting.epochs),
            ),
            pace=Pace(limits.window, 60.0),
        ),
        workers=WORKERS // setting.per_machine,
        per_machine=setting.per_machine,
        slots=setting.slots or load_program().slots,
        request=PlanRequest(partition="metis"),
        target=setting.target.value,
        fabric=setting.fabric.value,
        bandwidth=setting.bandwidth,
        ecn_threshold=limits.ecn_threshold,
        queue=limits.queue,
    )
