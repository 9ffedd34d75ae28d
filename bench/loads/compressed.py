"""Trainings that leave something out of their exchanges, and pictures of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from bench.loads.training import TrainingSetting, job_of, train
from switchgnn.host.registry import SWITCH
from switchgnn.training.base.compression import AUTO, CompressionOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from switchgnn.jobs.train_report import TrainReport

# Epochs between two points of an accuracy.
_EVALUATED = 10
_SHARES = (1.0, 0.85, 0.5, 0.25, 0.06)
# Columns are chosen before a small graph has been learned.
_COLUMN_EPOCHS, _CHOSEN_EVERY, _SEEDS = 60, 5, 2


@dataclass(frozen=True)
class CompressedRun:
    """One training."""

    epoch_bytes: float  # the mean of all epochs, on all links, both ways
    epoch_seconds: float  # the mean of all epochs but the first
    accuracy: float  # of the test vertices
    skipped: float  # the share of rows that were not sent as they had changed too little


def train_with(
    setting: TrainingSetting,
    transport: str,
    compression: CompressionOptions | None = None,
    *,
    seed: int = 0,
) -> CompressedRun:
    """Train once; `seed`: of weights, the split and the plan."""
    report = _train(setting, transport, compression or CompressionOptions(), seed=seed)
    seconds = report.seconds[1:] or report.seconds
    return CompressedRun(
        report.total_bytes / len(report.seconds),
        mean(seconds),
        report.test_accuracy or 0.0,
        (report.skipped_rows or 0) / (report.rows or 1),
    )


def _train(
    setting: TrainingSetting,
    transport: str,
    compression: CompressionOptions,
    *,
    seed: int = 0,
    evaluate_every: int | None = None,
) -> "TrainReport":
    from switchgnn.training import load_dataset  # noqa: PLC0415

    job = job_of(setting, transport)
    training = job.task.training
    options = replace(training.options, seed=seed, evaluate_every=evaluate_every or setting.epochs)
    task = replace(job.task, training=replace(training, options=options, compression=compression))
    return train(replace(job, task=task), load_dataset(setting.graph, seed=seed))


def draw_epochs(setting: TrainingSetting, path: Path) -> None:
    """Train with and without, and draw bytes and accuracy of each epoch as a picture."""
    kinds = {
        "plain": CompressionOptions(),
        "cache": CompressionOptions(AUTO),
        "cache, 16 bits": CompressionOptions(AUTO, 16),
        "cache, 8 bits": CompressionOptions(AUTO, 8),
    }
    reports = {
        name: _train(setting, SWITCH.name, options, evaluate_every=_EVALUATED)
        for name, options in kinds.items()
    }
    from matplotlib.figure import Figure  # noqa: PLC0415  only drawing needs it

    figure = Figure(figsize=(8, 5.5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for name, report in reports.items():
        epochs, sizes = _bytes_of_epochs(report)
        above.plot(epochs, sizes, linewidth=1, label=name)
        evaluated = [event for event in report.epochs if event["accuracy"]]
        accuracies = [100 * event["accuracy"]["test"] for event in evaluated]
        at = [event["epoch"] for event in evaluated]
        below.plot(at, accuracies, "o-", markersize=2.5, linewidth=1)
    above.set_ylabel("kB on one link")
    above.set_ylim(bottom=0)
    above.legend(ncols=len(kinds), fontsize=8)
    above.set_title(
        f"{setting.graph}, {setting.layers} layers of {setting.hidden}: an epoch", fontsize=10
    )
    below.set_ylabel("test accuracy, %")
    below.set_xlabel("epoch")
    figure.savefig(path, dpi=120)


def _bytes_of_epochs(report: "TrainReport") -> tuple[list[int], list[float]]:
    """Return some epochs, and the kilobytes of worker 0's link in them.

    An evaluation costs bytes, and a cache saves as many in the next epoch: both are left out.
    """
    totals = [
        event["traffic"]["bytes_up"] + event["traffic"]["bytes_down"] for event in report.epochs
    ]
    evaluated = [bool(event["accuracy"]) for event in report.epochs]
    epochs, sizes = [], []
    for number in range(1, len(totals)):
        if not evaluated[number] and not evaluated[number - 1]:
            epochs.append(number + 1)
            sizes.append((totals[number] - totals[number - 1]) / 1e3)
    return epochs, sizes


def draw_columns(setting: TrainingSetting, path: Path) -> None:
    """Draw accuracy and bytes by the share of columns."""
    setting = replace(setting, epochs=_COLUMN_EPOCHS)
    found = [_with_columns(setting, share) for share in _SHARES]
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    accuracy, size = figure.subplots(1, 2)
    _draw_range(accuracy, [[100 * each.accuracy for each in some] for some in found])
    _draw_range(size, [[each.epoch_bytes / 1e6 for each in some] for some in found])
    accuracy.set_ylabel("test accuracy, %")
    size.set_ylabel("MB of an epoch")
    size.set_ylim(bottom=0)
    model = f"{setting.layers} layers of {setting.hidden}"
    figure.suptitle(
        f"{setting.graph}, {model}, {_COLUMN_EPOCHS} epochs: mean and range of {_SEEDS} seeds",
        fontsize=10,
    )
    figure.savefig(path, dpi=120)


def _with_columns(setting: TrainingSetting, share: float) -> list[CompressedRun]:
    options = CompressionOptions(keep=share, columns_every=_CHOSEN_EVERY)
    return [train_with(setting, SWITCH.name, options, seed=seed) for seed in range(_SEEDS)]


def _draw_range(axis: "Axes", values: Sequence[Sequence[float]]) -> None:
    axis.plot(_SHARES, [mean(each) for each in values], "o-", markersize=4)
    axis.fill_between(
        _SHARES, [min(each) for each in values], [max(each) for each in values], alpha=0.2
    )
    axis.set_xlabel("share of the columns, N_f")
    axis.set_xlim(1.03, 0)
