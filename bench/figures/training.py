"""Epochs on links that are the bottleneck: the switch compared with host-based exchange."""

from collections.abc import Iterator

from bench.line import Goal, ResultLine
from bench.loads.training import WORKERS, Trainings, TrainingSetting, lacks_shaped_training
from bench.machine import installed_targets
from bench.measure import Samples
from bench.settings import Settings
from switchgnn.host.registry import HOST, HOST_PARTIAL, SWITCH
from switchgnn.topologies import FabricKind, Target

NAME = "training"
# Mininet makes its own namespaces.
OWN_NAMESPACE = False

# Boundary vertices have more than five remote copies each; the note gives the number.
_GRAPH = "random:1600:25600:1"
_BANDWIDTH = 2.0
_EPOCHS = 4
_RIVALS = {HOST.name: 0.5, HOST_PARTIAL.name: 1.0}
_BYTES_OFF = 1.01
missing = lacks_shaped_training


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure on the targets that are installed."""
    for target in installed_targets():
        yield from _lines(settings, target)


def _lines(settings: Settings, target: Target) -> Iterator[ResultLine]:
    setting = TrainingSetting(_GRAPH, _EPOCHS, target, FabricKind.MININET, _BANDWIDTH)
    trainings = Trainings(settings, setting, (SWITCH.name, *_RIVALS))
    what = f"{_GRAPH}, {WORKERS} workers, {_BANDWIDTH:g} Mbit/s, {target.value}"
    for rival, most in _RIVALS.items():
        yield trainings.epochs(NAME, what, rival, most)
    ours = trainings.reports[SWITCH.name]
    yield ResultLine(
        NAME,
        f"{what}: bytes of all exchanges",
        "MB",
        Samples(SWITCH.name, tuple(report.total_bytes / 1e6 for report in ours)),
        Samples("predicted by the plan", tuple(report.expected_bytes / 1e6 for report in ours)),
        Goal(ratio_most=_BYTES_OFF),
    )
