"""Trainings whose paths follow observed times, while something disturbs them, and fixed choices."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.line import Goal, ResultLine
from bench.loads import disturbed
from bench.loads.disturbed import Disturbance, train_disturbed
from bench.loads.kept import KeptSwitch
from bench.loads.training import WORKERS, TrainingSetting, job_of, lacks_training
from bench.measure import Samples
from bench.settings import Settings
from switchgnn.host.registry import HOST, HOST_PARTIAL, SWITCH
from switchgnn.planner.presets import AUTO, PlanRequest
from switchgnn.topologies import Fabric, FabricKind, Target
from switchgnn.topologies.choice import KeptPorts

if TYPE_CHECKING:
    from switchgnn.jobs.train import TrainJob

NAME = "adapt"
OWN_NAMESPACE = False

_EPOCHS, _AFTER = 60, 8
_LAYERS, _HIDDEN = 3, 64
_DENSE, _SPARSE = "random:1000:100000:1", "digits:80"
_FIXED = (SWITCH.name, HOST_PARTIAL.name, HOST.name)
_ALIKE, _BEST, _AUTO, _MORE_SECONDS = 1.02, 1.1, 0.6, 2.0
missing = lacks_training


@dataclass(frozen=True)
class _Case:
    what: str
    graph: str
    bandwidth: float | None  # Mbit/s of each link
    disturbance: Disturbance | None = None
    fabric: FabricKind = FabricKind.LOOPBACK

    @property
    def setting(self) -> TrainingSetting:
        return TrainingSetting(
            *(self.graph, _EPOCHS, Target.EMBEDDED, self.fabric),
            *(self.bandwidth, _LAYERS, _HIDDEN),
        )


_NOTHING = _Case("nothing happens", _DENSE, 20.0)
_CASES = (
    _Case("the switch gets a tenth of its processor", _DENSE, 20.0, disturbed.slow_switch(0.1)),
    _Case("worker 0 gets a fifth of its processor", _DENSE, 20.0, disturbed.slow_worker(0.2)),
    _Case(
        "worker 0's link drops to 10 Mbit/s",
        *(_DENSE, None, disturbed.slow_link(10.0), FabricKind.MININET),
    ),
)


def run(settings: Settings) -> Iterator[ResultLine]:
    """Train with each disturbance, with paths that follow it and over each fixed transport."""
    yield _Trainings(_NOTHING).against_choice(settings, _ALIKE)
    for case in _CASES:
        yield from _Trainings(case).lines(settings)
    with KeptSwitch(2 * WORKERS + 1) as switch:
        yield from _Flooded(switch).lines(settings)
    yield _dead(settings)


class _Trainings:
    """Trainings of a case."""

    def __init__(self, case: _Case) -> None:
        from switchgnn.jobs.train import predict_transport  # noqa: PLC0415
        from switchgnn.training import load_dataset  # noqa: PLC0415

        self.case, self.data = case, load_dataset(case.graph)
        self.base = replace(
            job_of(case.setting, SWITCH.name), request=PlanRequest(preset=AUTO, partition="metis")
        )
        self.found = predict_transport(self.base, self.data, lambda _: None)
        self.chosen = self.found.chosen.name

    def job(self, name: str) -> "TrainJob":
        """Return the training over a transport, or with paths that change (`AUTO`)."""
        from switchgnn.jobs.train import predict_paths  # noqa: PLC0415

        if name != AUTO:
            return job_of(self.case.setting, name)
        assert self.found.whole is not None
        over = replace(self.base, planned=self.found.whole)
        more = {"first": self.chosen, "keep_reduce": True}
        paths = predict_paths(over, self.data, self.found.whole[1], **more)
        return replace(over, task=replace(over.task, adapt=paths))

    def seconds(self, name: str) -> float:
        """Return the seconds of the epochs from the disturbance on."""
        report = train_disturbed(self.job(name), self.data, self.case.disturbance, _AFTER)
        return sum(report.seconds[_AFTER:])

    def against_choice(self, settings: Settings, most: float) -> ResultLine:
        """Compare with what `auto` takes once and for all."""
        names = (AUTO, self.chosen)
        pairs = [tuple(map(self.seconds, names)) for _ in range(settings.pairs)]
        return self._line(*zip(*pairs, strict=True), self.chosen, most)

    def lines(self, settings: Settings) -> Iterator[ResultLine]:
        """Compare with the best fixed transport, and with what `auto` takes."""
        taken = [
            {name: self.seconds(name) for name in (AUTO, *_FIXED)} for _ in range(settings.pairs)
        ]
        ours = tuple(each[AUTO] for each in taken)
        best = min(_FIXED, key=lambda name: sum(each[name] for each in taken))
        for name, most in ((best, _BEST), (self.chosen, _AUTO)):
            yield self._line(ours, tuple(each[name] for each in taken), name, most)

    def _line(
        self, ours: tuple[float, ...], theirs: tuple[float, ...], name: str, most: float
    ) -> ResultLine:
        what = f"{self.case.graph}, {WORKERS} workers, {self.case.what}: epochs from then on"
        label = f"{name}, the choice of auto" if name == self.chosen else f"{name}, the best"
        a, b = Samples("paths that change", ours), Samples(label, theirs)
        return ResultLine(NAME, what, "s", a, b, Goal(ratio_most=most))


class _Flooded(_Trainings):
    """Trainings on a switch that another job loads without a pause."""

    def __init__(self, switch: KeptSwitch) -> None:
        own, others = range(2, 2 + WORKERS), range(2 + WORKERS, 2 + 2 * WORKERS)
        self._ports = KeptPorts.read(Path(switch.file), own)

        @contextmanager
        def flood(_: Fabric) -> Iterator[None]:
            with switch.greedy(others):
                yield

        super().__init__(_Case("another job loads the switch", _SPARSE, None, flood))

    def job(self, name: str) -> "TrainJob":
        """Return the training on the other ports of the switch."""
        return replace(super().job(name), on=self._ports)


def _dead(settings: Settings) -> ResultLine:
    trainings = _Trainings(_Case("the switch ends", _DENSE, 20.0, disturbed.dead_switch()))
    alike = _Trainings(_NOTHING)
    pairs = [(trainings.seconds(AUTO), alike.seconds(AUTO)) for _ in range(settings.pairs)]
    more = Samples("more than without", tuple(a - b for a, b in pairs))
    return ResultLine(
        NAME,
        f"{_DENSE}, {WORKERS} workers, the switch ends: seconds of {_EPOCHS - _AFTER} epochs",
        "s",
        more,
        goal=Goal(most=_MORE_SECONDS),
        note="no epoch is lost; without --adapt the training fails",
    )
