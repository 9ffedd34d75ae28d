"""Workers that share the port of their machine, compared with as many that have one each."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from bench.line import Goal, ResultLine
from bench.loads.training import WORKERS, TrainingSetting, job_of, lacks_training, train
from bench.measure import Samples
from bench.settings import Settings
from switchgnn.host.registry import HOST, HOST_PARTIAL, SWITCH
from switchgnn.topologies import FabricKind, Target

if TYPE_CHECKING:
    from switchgnn.commands.train.report import TrainReport

NAME = "machines"
OWN_NAMESPACE = False

_GRAPH, _RATE, _PER_MACHINE = "digits:80", 20.0, 4
_MACHINES = WORKERS // _PER_MACHINE
# By the name of a way: how many workers share a port, and its Mbit/s.
_OURS = f"{_MACHINES} ports of {_RATE:g} Mbit/s"
_RIVALS = {
    f"{WORKERS} ports of {_RATE:g} Mbit/s": _RATE,
    f"{WORKERS} ports of {_RATE / _PER_MACHINE:g} Mbit/s": _RATE / _PER_MACHINE,
}
_TRANSPORTS = (SWITCH.name, HOST.name, HOST_PARTIAL.name)
_BYTES, _TIME = Goal(ratio_most=0.75), Goal(ratio_most=0.8)
missing = lacks_training


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure all ways in turn; the last rival has all links of a machine as fast as ours."""
    found: dict[tuple[str, str], list[TrainReport]] = defaultdict(list)
    for _, transport in product(range(settings.pairs), _TRANSPORTS):
        found[transport, _OURS].append(_trained(transport, _RATE, _PER_MACHINE))
        for rival, rate in _RIVALS.items():
            found[transport, rival].append(_trained(transport, rate, 1))
    what = f"{_GRAPH}, {_MACHINES} machines of {_PER_MACHINE} workers, 3 layers of 64"
    for transport in _TRANSPORTS:
        for number, rival in enumerate(_RIVALS):
            ours, others = found[transport, _OURS], found[transport, rival]
            if not number:
                sizes = (_samples(way, transport, _bytes) for way in (ours, others))
                yield ResultLine(NAME, f"{what}: bytes of an epoch", "MB", *sizes, _BYTES)
            times = (_samples(way, transport, _seconds) for way in (ours, others))
            yield ResultLine(NAME, f"{what}, against {rival}: epoch", "s", *times, _TIME)


def _samples(
    reports: list["TrainReport"], name: str, of: Callable[["TrainReport"], float]
) -> Samples:
    return Samples(name, tuple(map(of, reports)))


def _bytes(report: "TrainReport") -> float:
    return report.epoch_bytes / 1e6


def _seconds(report: "TrainReport") -> float:
    return report.epoch_seconds


def _trained(transport: str, rate: float, per_machine: int) -> "TrainReport":
    from switchgnn.training import load_dataset  # noqa: PLC0415

    setting = TrainingSetting(_GRAPH, 12, Target.EMBEDDED, FabricKind.LOOPBACK, rate, 3, 64)
    job = job_of(setting, transport)
    job = replace(job, workers=WORKERS // per_machine, per_machine=per_machine)
    return train(job, load_dataset(_GRAPH))
