"""Bytes, accuracy and time of trainings with cached rows, narrow numbers and fewer columns."""

from collections.abc import Iterator
from dataclasses import replace
from statistics import mean

from bench.line import Goal, ResultLine
from bench.loads.compressed import CompressedRun, draw_columns, draw_epochs, train_with
from bench.loads.training import TrainingSetting, lacks_training
from bench.measure import Samples, alternate
from bench.settings import Settings
from switchgnn.host.registry import HOST, HOST_PARTIAL, SWITCH
from switchgnn.topologies import FabricKind, Target
from switchgnn.topologies.mininet_fabric import mininet_missing
from switchgnn.training.base.compression import AUTO, CompressionOptions

NAME = "compression"
# Mininet makes its own namespaces.
OWN_NAMESPACE = False

_GRAPH = "digits"
_EPOCHS = 200
# Rows of two layers are as narrow as the classes.
_LAYERS, _HIDDEN = 3, 128
# Shares of columns, with the largest ratio of bytes to a training with all of them.
_KEEPS = ((0.85, 0.88), (0.5, None))
_FIXED = 0.1
_BANDWIDTH, _TIMED_EPOCHS, _TIME = 20.0, 60, 0.4

# What is left out, with the largest ratio of bytes to a plain training.
_CACHE = CompressionOptions(AUTO)
_OVER_SWITCH = (
    ("cache", _CACHE, 0.4),
    (f"cache, epsilon {_FIXED:g}", CompressionOptions(str(_FIXED)), 0.4),
    ("cache, 16 bits", CompressionOptions(AUTO, 16), 0.2),
    ("cache, 8 bits", CompressionOptions(AUTO, 8), 0.12),
    (f"cache, epsilon {_FIXED:g}, 16 bits", CompressionOptions(str(_FIXED), 16), 0.2),
    (f"cache, epsilon {_FIXED:g}, 8 bits", CompressionOptions(str(_FIXED), 8), 0.12),
    ("16 bits", CompressionOptions(bits=16), None),
    ("8 bits", CompressionOptions(bits=8), None),
)
# As CDFGNN publishes it.
_OVER_HOSTS = CompressionOptions(AUTO, 8)

missing = lacks_training


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure on the embedded switch over loopback, and in Mininet where it can be had."""
    graph = _GRAPH if settings.data is None else str(settings.data)
    setting = TrainingSetting(
        graph, _EPOCHS, Target.EMBEDDED, FabricKind.LOOPBACK, layers=_LAYERS, hidden=_HIDDEN
    )
    seeds = range((settings.pairs + 1) // 2)
    yield from _over_switch(setting, seeds)
    yield from _over_hosts(setting, seeds)
    if mininet_missing() is None:
        yield _time(settings, setting)
    if settings.plots is not None:
        settings.plots.mkdir(parents=True, exist_ok=True)
        draw_epochs(setting, settings.plots / "compression.png")
        draw_columns(setting, settings.plots / "columns.png")


def _over_switch(setting: TrainingSetting, seeds: range) -> Iterator[ResultLine]:
    plain = [train_with(setting, SWITCH.name, seed=seed) for seed in seeds]
    cached = []
    for name, options, most in _OVER_SWITCH:
        less = [train_with(setting, SWITCH.name, options, seed=seed) for seed in seeds]
        yield _bytes(f"{setting.graph}, switch: {name}", less, plain, most)
        if options is _CACHE:
            cached = less
    for keep, most in _KEEPS:
        options = replace(_CACHE, keep=keep)
        kept = [train_with(setting, SWITCH.name, options, seed=seed) for seed in seeds]
        what = f"{setting.graph}, switch: cache, {keep:g} of the columns, against the cache"
        yield _bytes(what, kept, cached, most)


def _over_hosts(setting: TrainingSetting, seeds: range) -> Iterator[ResultLine]:
    keep, most = _KEEPS[0]
    columns = f"{keep:g} of the columns"
    for transport in (HOST.name, HOST_PARTIAL.name):
        plain = [train_with(setting, transport, seed=seed) for seed in seeds]
        for name, options, goal in (
            ("cache, 8 bits", _OVER_HOSTS, None),
            (columns, CompressionOptions(keep=keep), most),
        ):
            less = [train_with(setting, transport, options, seed=seed) for seed in seeds]
            yield _bytes(f"{setting.graph}, {transport}: {name}", less, plain, goal)


def _bytes(
    what: str, less: list[CompressedRun], plain: list[CompressedRun], most: float | None
) -> ResultLine:
    """Compare the bytes of trainings with the same seeds, and their accuracies."""
    accuracy, before = (100 * mean(each.accuracy for each in trained) for trained in (less, plain))
    note = f"test accuracy {accuracy:.1f} %, {accuracy - before:+.1f} points"
    skipped = mean(each.skipped for each in less)
    return ResultLine(
        NAME,
        f"{what}: bytes of an epoch",
        "MB",
        Samples("less", tuple(each.epoch_bytes / 1e6 for each in less)),
        Samples("plain", tuple(each.epoch_bytes / 1e6 for each in plain)),
        Goal(ratio_most=most),
        f"{note}; {skipped:.0%} of rows unchanged" if skipped else note,
    )


def _time(settings: Settings, setting: TrainingSetting) -> ResultLine:
    links = replace(setting, epochs=_TIMED_EPOCHS, fabric=FabricKind.MININET, bandwidth=_BANDWIDTH)
    less, plain = alternate(
        settings.pairs,
        (
            "cache, 16 bits",
            lambda: train_with(links, SWITCH.name, CompressionOptions(AUTO, 16)).epoch_seconds,
        ),
        ("plain", lambda: train_with(links, SWITCH.name).epoch_seconds),
    )
    what = f"{setting.graph}, {_BANDWIDTH:g} Mbit/s, {_TIMED_EPOCHS} epochs: epoch"
    return ResultLine(NAME, what, "s", less, plain, Goal(ratio_most=_TIME))
