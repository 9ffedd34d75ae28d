"""Epochs on slow and on fast links: the switch compared with the better path between hosts."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from bench.line import Goal, ResultLine
from bench.loads.training import WORKERS, Trainings, TrainingSetting, lacks_training
from bench.measure import Samples
from bench.settings import Settings
from switchgnn.host.registry import HOST, HOST_PARTIAL, SWITCH
from switchgnn.topologies import FabricKind, Target
from switchgnn.topologies.mininet_fabric import mininet_missing

NAME = "epoch"
OWN_NAMESPACE = False

# The data set of `make run`.
_GRAPH = "digits:80"
_EPOCHS = 20
_HIDDEN = 64
_LAYERS = (2, 3)
_BANDWIDTHS = (20.0, None)
_RIVALS = (HOST.name, HOST_PARTIAL.name)
_RATIO = 1.0
_WIDTHS = (16, 64, 256)
# Bytes do not vary, except for what is sent again.
_BYTE_EPOCHS = 3
missing = lacks_training


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure on the embedded switch, in Mininet where it can be had, and over loopback."""
    fabrics = [FabricKind.LOOPBACK] if mininet_missing() else list(FabricKind)
    for fabric, bandwidth, layers in product(fabrics, _BANDWIDTHS, _LAYERS):
        setting = TrainingSetting(
            _GRAPH, _EPOCHS, Target.EMBEDDED, fabric, bandwidth, layers, _HIDDEN
        )
        yield _against_fastest(settings, setting)
    if settings.data is not None:
        graph = str(settings.data)
        yield _against_fastest(
            settings, TrainingSetting(graph, _EPOCHS, Target.EMBEDDED, FabricKind.LOOPBACK)
        )
    for width in _WIDTHS:
        yield _bytes(settings, width)


def _against_fastest(settings: Settings, setting: TrainingSetting) -> ResultLine:
    trainings = Trainings(settings, setting, (SWITCH.name, *_RIVALS))
    rival = min(_RIVALS, key=lambda name: trainings.epoch_seconds(name).median)
    return trainings.epochs(NAME, setting.words, rival, _RATIO)


def _bytes(settings: Settings, width: int) -> ResultLine:
    setting = TrainingSetting(
        _GRAPH, _BYTE_EPOCHS, Target.EMBEDDED, FabricKind.LOOPBACK, layers=3, hidden=width
    )
    transports = SWITCH.name, HOST_PARTIAL.name
    trainings = Trainings(replace(settings, pairs=1), setting, transports)
    ours, others = (
        Samples(name, tuple(report.epoch_bytes / 1e6 for report in trainings.reports[name]))
        for name in transports
    )
    what = f"{_GRAPH}, {WORKERS} workers, 3 layers of {width}: bytes of an epoch"
    return ResultLine(NAME, what, "MB", ours, others, Goal(ratio_most=_RATIO))
