"""What predictions of real exchanges rest on, and how far off they are.

What processors take is measured and compared with the profiles. Then the exchanges of trainings
over limited links are compared with what `train --transport auto` predicts for them.
"""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import product

from bench.line import Goal, ResultLine
from bench.loads.processors import processor_seconds
from bench.loads.training import Trainings, TrainingSetting, job_of, lacks_training
from bench.machine import installed_targets
from bench.measure import Samples
from bench.settings import Settings
from bench.testbeds.namespace import Namespace
from switchgnn.host.registry import HOST, HOST_PARTIAL, SWITCH
from switchgnn.profiles import find_profile
from switchgnn.topologies import FabricKind, Target

NAME = "predicted"
OWN_NAMESPACE = False

_GRAPHS, _LAYERS, _BANDWIDTH = ("digits", "digits:80", "random:2000:20000:1"), (2, 3), 20.0
# Few slots make many barriers; without a limit on links, processors are the bottleneck.
_FEW_SLOTS = (None, 1024, 256)
_EPOCHS, _HIDDEN = 10, 64
_GOAL = Goal(ratio=0.75, ratio_most=1.25)
# A profile's numbers are for epochs, between which processors also compute.
_WITHIN = Goal(ratio=0.5, ratio_most=2.0)
_MILLI = 1e-3
missing = lacks_training


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure processors, and then exchanges."""
    for target in installed_targets():
        yield from _processors(settings, target)
    for graph, layers in product(_GRAPHS, _LAYERS):
        yield from _exchanges(settings, _setting(graph, layers, _BANDWIDTH))
    for bandwidth, slots in product((_BANDWIDTH, None), _FEW_SLOTS):
        if bandwidth is None or slots is not None:
            yield from _exchanges(settings, _setting(_GRAPHS[1], _LAYERS[1], bandwidth, slots))


def _setting(
    graph: str, layers: int, bandwidth: float | None, slots: int | None = None
) -> TrainingSetting:
    return TrainingSetting(
        *(graph, _EPOCHS, Target.EMBEDDED, FabricKind.LOOPBACK),
        *(bandwidth, layers, _HIDDEN, slots),
    )


def _processors(settings: Settings, target: Target) -> Iterator[ResultLine]:
    profile = find_profile(target.value)
    with Namespace():
        found = [processor_seconds(target) for _ in range(settings.pairs)]
    for name, first in asdict(found[0]).items():
        if first is None:
            continue
        yield ResultLine(
            NAME,
            f"{target.value}: {name}",
            "ms",
            Samples("measured", tuple(getattr(each, name) / _MILLI for each in found)),
            Samples("profile", (getattr(profile, name) / _MILLI,) * len(found)),
            _WITHIN,
        )


def _exchanges(settings: Settings, setting: TrainingSetting) -> Iterator[ResultLine]:
    from switchgnn.jobs.train import predict_transport  # noqa: PLC0415
    from switchgnn.training import load_dataset  # noqa: PLC0415

    job, data = job_of(setting, SWITCH.name), load_dataset(setting.graph)
    seconds = predict_transport(job, data, lambda _: None).seconds
    # Slots matter to the switch alone.
    kinds = [SWITCH.name] if setting.slots else [SWITCH.name, HOST_PARTIAL.name, HOST.name]
    trainings = Trainings(settings, setting, kinds)
    for kind in kinds:
        reports = trainings.reports[kind]
        measured = tuple((report.exchange_seconds or 0.0) / _MILLI for report in reports)
        yield ResultLine(
            NAME,
            f"{setting.words}, {kind}: exchanges of an epoch",
            "ms",
            Samples("measured", measured),
            Samples("predicted", (seconds[kind] / _MILLI,) * len(measured)),
            _GOAL,
        )
