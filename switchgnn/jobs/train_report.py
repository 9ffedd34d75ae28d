"""The report of a training, for users and programs."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from switchgnn.base.array_types import Float64s
from switchgnn.host.wire.link import Traffic
from switchgnn.jobs.report import Report
from switchgnn.planner import Direction

# Epochs in which a model with a wide input may try several orders of its steps.
_TRIED = 5
# Called with worker 0's event of an epoch.
EpochListener = Callable[[dict[str, Any]], None]
_TROUBLES = ("recalls", "sums_recalled", "marked", "window_cuts")


@dataclass(kw_only=True)
class TrainReport(Report):
    """A whole training; lists per link are in the order of the workers, or of their machines.

    The bytes of `leaf_spine` include gradients.
    """

    workers_per_machine: int = 1  # those of a machine share a link
    transport: str
    dataset: str
    model: str
    epochs: list[dict[str, Any]]  # worker 0's report of each epoch
    losses: list[float]
    # the last ones; None without such vertices
    train_accuracy: float | None
    validation_accuracy: float | None
    test_accuracy: float | None
    seconds: list[float]  # the time of each epoch, of the slowest worker
    epoch_seconds: float  # the median of `seconds` without the first epoch
    vertices_per_second: float  # of the graph, over `epoch_seconds` (section 5.1)
    # the parts of an epoch's seconds (the mean over the workers, then the median over the epochs):
    # `compute`, `waiting` for exchanges and `all_reduce`, which add up to the epoch; and
    # `exchange`, the time of exchanges, computing or waiting
    split: dict[str, float]
    bytes_per_link: list[dict[str, int]]  # {"up", "down"} of the exchanges of each worker
    expected_bytes_per_link: list[dict[str, int]]  # predicted by plan or schedule without losses
    # counted by the interfaces, gradients included; None over loopback
    wire_bytes_per_link: list[dict[str, int]] | None
    traffic: list[dict[str, int]]  # frames and bytes of each worker's exchanges
    kept: int  # passes of a layer that used the sums of an earlier pass over unchanged features
    # bytes of the largest IP packet between hosts, or `fragment`; None over others
    mtu: int | str | None = None
    bandwidth: float | None = None  # Mbit/s of each link; None without a limit or a network
    # mean frames and bytes of each worker's exchanges in an epoch, without the first ones, see
    # `_mean_growth`
    epoch_traffic: list[dict[str, float]] = field(default_factory=list)
    # rounds repeated as features outgrew the foreseen scale; None without a switch
    void_rounds: int | None = None
    # `recalls`, recalls that brought a sum (`sums_recalled`), marked packets (`marked`) and
    # `window_cuts` of all workers; empty without a switch
    troubles: dict[str, int] = field(default_factory=dict)
    # median exchange time of the worker with the least, which waited least for computing workers.
    # Compare it with a prediction.
    exchange_seconds: float | None = None
    # of an epoch's exchanges by transport, if `auto` chose; else None
    predicted_seconds: dict[str, float] | None = None
    # `switch` or `gloo`, which added up the gradients; None for one worker
    reduce: str | None = None
    # the options that leave something out of exchanges; None without any
    compression: str | None = None
    # of all exchanges on all links, both ways, if nothing were left out or lost; None without
    # `compression`
    bytes_without: int | None = None
    # of all workers; rows that were due, and those of them that were not sent as they had changed
    # too little; None as before
    rows: int | None = None
    skipped_rows: int | None = None
    epsilon: float | None = None  # of the cache, in the last epoch; None without a cache
    # of runs of epochs `first` to `last`: by direction the paths of runs of blocks, each as
    # [path, blocks], and `reduce`, that of the all-reduce; None if paths do not change
    paths: list[dict[str, Any]] | None = None
    # changes of paths from an `epoch` on: the `blocks` by direction as runs [first, last], none for
    # the all-reduce, `from`, `to`, the seconds in an epoch that decided (`observed` and `predicted`
    # over the path before, `expected` over the other), and all of it in `words`; None as before
    changes: list[dict[str, Any]] | None = None

    @property
    def path_shares(self) -> dict[str, float]:
        """Return the share of each path in the blocks of all epochs."""
        counts: Counter[str] = Counter()
        for run in self.paths or ():
            for direction in Direction:
                for path, blocks in run.get(direction.value, ()):
                    counts[path] += blocks * (run["last"] - run["first"] + 1)
        return {path: count / counts.total() for path, count in counts.most_common() if count}

    @property
    def workers_text(self) -> str:
        """The number of workers for messages."""
        machines, each = self.workers // self.workers_per_machine, self.workers_per_machine
        on = f"{machines} machine{'s' * (machines > 1)} \N{MULTIPLICATION SIGN} {each}"
        return f"{on if each > 1 else self.workers} worker{'s' * (self.workers > 1)}"

    @property
    def epoch_bytes(self) -> float:
        """Of an epoch's exchanges, on all links, both ways."""
        return sum(link["bytes_up"] + link["bytes_down"] for link in self.epoch_traffic)

    @property
    def epoch_frames(self) -> float:
        """Of an epoch's exchanges, on all links, both ways."""
        return sum(link["frames_up"] + link["frames_down"] for link in self.epoch_traffic)

    @property
    def total_bytes(self) -> int:
        """The bytes of all exchanges, on all links, both ways."""
        return sum(link["up"] + link["down"] for link in self.bytes_per_link)

    @property
    def expected_bytes(self) -> int:
        """The bytes of all exchanges as predicted without losses."""
        return sum(link["up"] + link["down"] for link in self.expected_bytes_per_link)


class Recorder:
    """Collects the events of the workers in each epoch."""

    def __init__(self, workers: int, on_epoch: EpochListener) -> None:
        self._epochs: list[list[dict[str, Any]]] = [[] for _ in range(workers)]
        self._on_epoch = on_epoch

    def __call__(self, worker: int, event: dict[str, Any]) -> None:
        """Take one event."""
        if event["event"] != "epoch":
            return
        self._epochs[worker].append(event)
        if worker == 0:
            self._on_epoch(event)

    def report(
        self,
        finished: list[dict[str, Any]],
        wire_bytes: list[dict[str, int]] | None,
        **what: Any,  # noqa: ANN401
    ) -> TrainReport:
        """Return the report; `wire_bytes` are those of the interfaces, or None."""
        first = self._epochs[0]
        slowest = self._each("seconds").max(axis=0)
        accuracies = [event["accuracy"] for event in first if event["accuracy"]]
        last = accuracies[-1] if accuracies else {}
        each = what.get("workers_per_machine", 1)
        links = finished[::each]
        return TrainReport(
            **what,
            epochs=first,
            losses=[event["loss"] for event in first],
            train_accuracy=last.get("train"),
            validation_accuracy=last.get("validation"),
            test_accuracy=last.get("test"),
            seconds=slowest.tolist(),
            epoch_seconds=(seconds := _typical(slowest)),
            vertices_per_second=what["vertices"] / seconds if seconds else 0.0,
            split=self._split(),
            bytes_per_link=[_up_and_down(end["traffic"]) for end in links],
            expected_bytes_per_link=[_up_and_down(end["expected"]) for end in links],
            wire_bytes_per_link=wire_bytes,
            traffic=[end["traffic"] for end in links],
            kept=finished[0]["kept"],
            epoch_traffic=[_of_an_epoch(events) for events in self._epochs[::each]],
            void_rounds=first[-1].get("void") if first else None,
            troubles={
                name: total for name in _TROUBLES if (total := self._total(name)) is not None
            },
            exchange_seconds=_typical(self._each("exchange").min(axis=0)),
            bytes_without=self._total("bytes_without"),
            rows=self._total("rows"),
            skipped_rows=self._total("skipped_rows"),
            epsilon=first[-1].get("epsilon") if first else None,
            paths=(paths := _paths(first)),
            changes=paths and [change for event in first for change in event["changes"]],
        )

    def _split(self) -> dict[str, float]:
        names = ("exchange", "waiting", "all_reduce")
        means = {name: self._each(name).mean(axis=0) for name in ("seconds", *names)}
        split = {name: _typical(means[name]) for name in names}
        compute = means["seconds"] - means["waiting"] - means["all_reduce"]
        return {"compute": _typical(compute), **split}

    def _total(self, name: str) -> int | None:
        counts = [events[-1].get(name) for events in self._epochs if events]
        known = [int(count) for count in counts if count is not None]
        return sum(known) if known else None

    def _each(self, name: str) -> Float64s:
        values = [[float(event[name]) for event in events] for events in self._epochs]
        return np.array(values, dtype=np.float64)


def _paths(events: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    runs: list[dict[str, Any]] = []
    for event in events:
        if (paths := event.get("paths")) is None:
            return None
        if runs and paths == {name: runs[-1][name] for name in paths}:
            runs[-1]["last"] = event["epoch"]
        else:
            runs.append({"first": event["epoch"], "last": event["epoch"], **paths})
    return runs or None


def _up_and_down(traffic: dict[str, int]) -> dict[str, int]:
    return {"up": traffic["bytes_up"], "down": traffic["bytes_down"]}


def _of_an_epoch(events: list[dict[str, Any]]) -> dict[str, float]:
    """Return the mean traffic of a worker's later epochs, as ``_mean_growth`` takes them."""
    if not events:
        return dict.fromkeys(Traffic._fields, 0.0)
    counts = [event["traffic"] for event in events]
    return {name: _mean_growth([count[name] for count in counts]) for name in counts[0]}


def _mean_growth(counts: list[int]) -> float:
    """Return by how much a count grows in an epoch, without the first ones where there are others.

    In the first epoch all transports exchange more, and models with a wide input try several orders
    in the first few.
    """
    if len(counts) == 1:
        return float(counts[0])
    first = _TRIED if len(counts) > _TRIED + 1 else 0
    return (counts[-1] - counts[first]) / (len(counts) - 1 - first)


def _typical(values: Float64s) -> float:
    """Return the median without the first epoch, which is slower because of warming up."""
    return float(np.median(values[1:] if len(values) > 1 else values)) if len(values) else 0.0
