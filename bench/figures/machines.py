"""Workers that share the port of their machine, compared with as many that have one each."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.line import Goal, ResultLine
from bench.loads.training import WORKERS, TrainingSetting, lacks_training, train_over
from bench.measure import Samples
from bench.settings import Settings
from switchgnn.host.registry import AUTO, HOST, HOST_PARTIAL, SWITCH
from switchgnn.topologies import FabricKind, Target

if TYPE_CHECKING:
    from switchgnn.jobs.train_report import TrainReport

NAME = "machines"
OWN_NAMESPACE = False

_GRAPH, _RATE, _PER_MACHINE = "digits:80", 20.0, 4
_MACHINES = WORKERS // _PER_MACHINE
_OURS = f"{_MACHINES} ports of {_RATE:g} Mbit/s"
_SETTING = TrainingSetting(
    *(_GRAPH, 12, Target.EMBEDDED, FabricKind.LOOPBACK, _RATE, 3, 64), per_machine=_PER_MACHINE
)
_RIVALS = {
    f"{WORKERS} ports of {rate:g} Mbit/s": replace(_SETTING, bandwidth=rate, per_machine=1)
    for rate in (_RATE, _RATE / _PER_MACHINE)
}
_TRANSPORTS = (AUTO.name, SWITCH.name, HOST.name, HOST_PARTIAL.name)
_BYTES, _TIME = Goal(ratio_most=0.75), Goal(ratio_most=0.8)
missing = lacks_training


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure both ways in turn; the last rival has all links of a machine as fast as ours."""
    from switchgnn.training import load_dataset  # noqa: PLC0415

    data = load_dataset(_GRAPH)
    what = f"{_GRAPH}, {_MACHINES} machines of {_PER_MACHINE} workers, 3 layers of 64"
    for transport in _TRANSPORTS:
        found: dict[str, list[TrainReport]] = defaultdict(list)
        for _ in range(settings.pairs):
            for way, setting in {_OURS: _SETTING, **_RIVALS}.items():
                found[way].append(train_over(setting, data, transport))
        sizes = {
            way: Samples(transport, tuple(report.epoch_bytes / 1e6 for report in reports))
            for way, reports in found.items()
        }
        times = {
            way: Samples(transport, tuple(report.epoch_seconds for report in reports))
            for way, reports in found.items()
        }
        rival = next(iter(_RIVALS))
        title = f"{what}: bytes of an epoch"
        yield ResultLine(NAME, title, "MB", sizes[_OURS], sizes[rival], _BYTES)
        for rival in _RIVALS:
            title = f"{what}, {_OURS} against {rival}: epoch"
            yield ResultLine(NAME, title, "s", times[_OURS], times[rival], _TIME)
