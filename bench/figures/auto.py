"""Epochs over what `--transport auto` takes, compared with the best transport of each graph."""

from collections.abc import Iterator
from itertools import product

from bench.line import Goal, ResultLine
from bench.loads.training import Trainings, TrainingSetting, lacks_training
from bench.settings import Settings
from switchgnn.host.registry import HOST, HOST_PARTIAL, SWITCH
from switchgnn.planner.presets import AUTO
from switchgnn.topologies import FabricKind, Target

NAME = "auto"
OWN_NAMESPACE = False

# Graphs, and slots of the switch; None: all that the program has.
_CASES: tuple[tuple[str, int | None], ...] = (
    *(("digits", None), ("digits:80", None), ("digits:160", None)),
    *(("random:2000:20000:1", None), ("random:1000:100000:1", None)),
    *(("random:4000:200000:1", None), ("digits:80", 1024), ("random:1000:100000:1", 512)),
)
_BANDWIDTHS = (None, 20.0, 100.0)
_EPOCHS, _LAYERS, _HIDDEN = 10, 3, 64
_RATIO = 1.05
_KINDS = (SWITCH, HOST_PARTIAL, HOST)
missing = lacks_training


def run(settings: Settings) -> Iterator[ResultLine]:
    """Train on each graph over each transport that `auto` may take."""
    cases = _CASES if settings.data is None else (*_CASES, (str(settings.data), None))
    for (graph, slots), bandwidth in product(cases, _BANDWIDTHS):
        yield _compared(settings, graph, slots, bandwidth)


def _compared(
    settings: Settings, graph: str, slots: int | None, bandwidth: float | None
) -> ResultLine:
    setting = TrainingSetting(
        *(graph, _EPOCHS, Target.EMBEDDED, FabricKind.LOOPBACK),
        *(bandwidth, _LAYERS, _HIDDEN, slots),
    )
    others = [kind.name for kind in _KINDS]
    trainings = Trainings(settings, setting, [AUTO, *others])
    best = min(others, key=lambda name: trainings.epoch_seconds(name).median)
    taken, fastest = (trainings.epoch_seconds(name) for name in (AUTO, best))
    note = f"auto takes {trainings.reports[AUTO][0].transport}"
    what = f"{setting.words}: epoch"
    return ResultLine(NAME, what, "s", taken, fastest, Goal(ratio_most=_RATIO), note)
