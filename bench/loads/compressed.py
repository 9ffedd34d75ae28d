# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Trainings that leave something out of their exchanges, and pictures of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from bench.loads.training import Setting, job_of, train
from switchgnn.host.registry import SWITCH
from switchgnn.training.fewer import AUTO, NOTHING_LESS, ColumnsBy, FewerBytes, fewer_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from switchgnn.commands.train.report import TrainReport

# Epochs between two points of an accuracy.
_EVALUATED = 10
_SHARES = (1.0, 0.85, 0.5, 0.25, 0.1)
_COLUMN_EPOCHS, _SEEDS = 100, 2


@dataclass(frozen=True)
class Trained:
    """One training.

    Attributes:
        epoch_bytes: the mean of all epochs, on all links, both ways.
        epoch_seconds: the mean of all epochs but the first.
        accuracy: of the test vertices.
        skipped: the share of rows that were not sent as they had changed too little.
    """

    epoch_bytes: float
    epoch_seconds: float
    accuracy: float
    skipped: float


def train_with(
    setting: Setting, transport: str, fewer: FewerBytes = NOTHING_LESS, *, seed: int = 0
) -> Trained:
    """Train once; `seed`: of weights, the split and the plan."""
    report = _train(setting, transport, fewer, seed=seed)
    seconds = report.seconds[1:] or report.seconds
    return Trained(
        report.total_bytes / len(report.seconds),
        mean(seconds),
        report.test_accuracy or 0.0,
        (report.skipped_rows or 0) / (report.rows or 1),
    )


def _train(
    setting: Setting,
    transport: str,
    fewer: FewerBytes,
    *,
    seed: int = 0,
    evaluate_every: int | None = None,
) -> "TrainReport":
    from switchgnn.training import load_dataset  # noqa: PLC0415

    job = job_of(setting, transport)
    training = job.task.training
    options = replace(training.options, seed=seed, evaluate_every=evaluate_every or setting.epochs)
    task = replace(job.task, training=replace(training, options=options, fewer=fewer))
    return train(replace(job, task=task), load_dataset(setting.graph, seed=seed))


def draw_epochs(setting: Setting, path: Path) -> None:
    """Train with and without, and draw bytes and accuracy of each epoch as a picture."""
    kinds = {
        "plain": NOTHING_LESS,
        "cache": fewer_bytes(32, AUTO),
        "cache, 16 bits": fewer_bytes(16, AUTO),
        "cache, 8 bits": fewer_bytes(8, AUTO),
    }
    reports = {
        name: _train(setting, SWITCH.name, fewer, evaluate_every=_EVALUATED)
        for name, fewer in kinds.items()
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


def draw_columns(setting: Setting, path: Path) -> None:
    """Draw the accuracy by the share of columns that is exchanged, for both ways to choose."""
    setting = replace(setting, epochs=_COLUMN_EPOCHS)
    whole = _accuracies(setting, ColumnsBy.GRADIENT, 1.0)
    found: dict[ColumnsBy, list[list[float]]] = {
        by: [whole, *(_accuracies(setting, by, share) for share in _SHARES[1:])] for by in ColumnsBy
    }
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    axis = figure.subplots()
    _draw_shares(axis, found)
    model = f"{setting.layers} layers of {setting.hidden}"
    title = f"{setting.graph}, {model}, {_COLUMN_EPOCHS} epochs: mean and range of {_SEEDS} seeds"
    axis.set_title(title, fontsize=10)
    figure.savefig(path, dpi=120)


def _accuracies(setting: Setting, by: ColumnsBy, share: float) -> list[float]:
    fewer = fewer_bytes(32, None, keep=share, by=by)
    return [
        100 * train_with(setting, SWITCH.name, fewer, seed=seed).accuracy for seed in range(_SEEDS)
    ]


def _draw_shares(axis: "Axes", found: Mapping[ColumnsBy, Sequence[Sequence[float]]]) -> None:
    for by, accuracies in found.items():
        middle = [mean(each) for each in accuracies]
        axis.plot(_SHARES, middle, "o-", markersize=4, label=f"by {by.value}")
        low, high = ([end(each) for each in accuracies] for end in (min, max))
        axis.fill_between(_SHARES, low, high, alpha=0.2)
    axis.set_xlabel("share of the columns that is exchanged, N_f")
    axis.set_ylabel("test accuracy, %")
    axis.invert_xaxis()
    axis.legend(fontsize=8)
