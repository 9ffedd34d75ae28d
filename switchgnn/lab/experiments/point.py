"""A simulation, partition or training: all that its results depend on, except versions."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import ClassVar

import switchgnn
from switchgnn.base.machine import version_of
from switchgnn.host.base.pace import CongestionRule
from switchgnn.lab.simulator.request import HOSTS_ALONE, SPINE
from switchgnn.lab.simulator.simulation import compiled_models
from switchgnn.planner.plan.manifest import STRAWMAN
from switchgnn.planner.presets import AUTO
from switchgnn.profiles import UNLIMITED

_DIGITS = 12
_NAMED = ("graph", "workers", "system")
# What a plan depends on: always, and within a switch that has limits.
_PLAN = ("graph", "workers", "seed", "system", "memory", "order", "slot_features", "switch")
_WITHIN = ("bandwidth", "recirculation_rate", "table_memory", "leaves", "spines")
# The same of plans whose blocks are for leaves and spines.
_OVER = ("leaves", "spines", "completion")


_LIBRARIES = ("switchgnn", "numpy", "pymetis", "mtkahypar")


@dataclass(frozen=True)
class Point:
    """What a cell of a figure shows; each subclass is another way to get its numbers."""

    graph: str
    workers: int
    system: str
    seed: int = field(default=0, kw_only=True)  # for all that is random
    versions: ClassVar[tuple[str, ...]] = (*_LIBRARIES, "code")  # those that a result depends on
    measured: ClassVar[bool] = False  # whether times are real, so that nothing else may run
    differ_in: ClassVar[str] = "workers"  # the only field in which points of a process differ

    @property
    def name(self) -> str:
        """Return the name of its result file: no two points have the same."""
        graph = self.graph.replace(":", "-").replace("/", "-")
        return f"{graph}-{self.workers}-{self.system}-{_digest(asdict(self))}"

    @property
    def plan(self) -> str | None:
        """Return a key that points share if one process answers them; None: none shares it."""
        return _digest({name: it for name, it in asdict(self).items() if name != self.differ_in})

    def __str__(self) -> str:
        """Return what differs from the defaults, for progress output."""
        told = [(it.name, getattr(self, it.name)) for it in fields(self) if it.name not in _NAMED]
        usual = {it.name: it.default for it in fields(self)}
        others = [f", {name} {value}" for name, value in told if value != usual[name]]
        return f"{self.graph}, {self.workers} workers, {self.system}{''.join(others)}"


@dataclass(frozen=True)
class BoundaryPoint(Point):
    """A partition of the graph by METIS, for figures 1, 7 and 9."""


@dataclass(frozen=True)
class TrainingPoint(Point):
    """A training over a transport (`system`), with packets of the embedded switch over loopback."""

    memory: int = 10_000_000  # bytes of the switch's slots
    layers: int = 4
    features: int = 128  # numbers of a hidden feature
    epochs: int = 10
    versions: ClassVar[tuple[str, ...]] = (*_LIBRARIES, "torch", "training")
    measured: ClassVar[bool] = True
    differ_in: ClassVar[str] = "system"  # one `switchgnn train` runs several


@dataclass(frozen=True)
class SimulationPoint(Point):
    """A simulation; fields without a comment are those of SimulateOptions and NetworkOptions."""

    memory: int | None = None  # bytes of the switch; None: it never overflows, or has no part in it
    order: str | None = None  # a key of ORDER_STRATEGIES instead of the system's, or None
    layers: int = 4
    features: int = 128
    bandwidth: float = 100_000.0
    delay: float = 2.0
    congestion: str = CongestionRule.DCTCP.value  # that of a CongestionRule
    recirculation_rate: float | None = None
    window: int = 512
    # leaves, spines: of a leaf-spine; 0: a star
    leaves: int = 0
    spines: int = 0
    completion: str = SPINE
    slot_features: int | None = None
    bin_size: int | None = None
    background: float = 0.0
    buffer: int | None = None
    mtu: int | str | None = None  # of the frames of hosts alone; None where the switch adds
    switch: str = UNLIMITED.name  # the name of a profile, for its banks and ports
    table_memory: int | None = None
    versions: ClassVar[tuple[str, ...]] = (*Point.versions, "models")

    @property
    def plan(self) -> str | None:
        """Return a key that points share if they have the same plan; None: no plan is made."""
        if self.system in (*HOSTS_ALONE, AUTO):
            return None
        within = () if self.switch == UNLIMITED.name else _WITHIN
        over = () if self.system == STRAWMAN else _OVER
        return _digest({name: getattr(self, name) for name in {*_PLAN, *within, *over}})


def read_point(line: str) -> Point:
    """Return the point whose fields are those of a line of JSON."""
    told = json.loads(line)
    kinds: tuple[type[Point], ...] = (BoundaryPoint, TrainingPoint, SimulationPoint)
    return next(it(**told) for it in kinds if {each.name for each in fields(it)} == told.keys())


def _digest(words: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()[:_DIGITS]


# Plans and the duration of simulated exchanges depend on these,
_PACKAGES = ("host", "p4src", "planner", "profiles", "lab/simulator")
# and trainings on these.
_TRAINING = ("controller", "host", "jobs", "p4src", "planner", "softswitch", "training")
_FILES = ("lab/experiments/process.py",)
_SOURCES = (".py", ".toml", ".h", ".p4")
_CODE_DIGITS = 16


def current_versions() -> dict[str, str]:
    """Return the versions of libraries, of the models as they are compiled, and of the code.

    Raises:
        SimulatorError: a compiler is missing.
    """
    models = compiled_models().name
    libraries = {name: version_of(name) or "not installed" for name in (*_LIBRARIES, "torch")}
    return {**libraries, "models": models, "code": _code(_PACKAGES), "training": _code(_TRAINING)}


def _code(packages: Sequence[str]) -> str:
    total = hashlib.sha256()
    home = Path(switchgnn.__file__).parent
    files = [home / name for name in _FILES]
    for package in packages:
        files += sorted(path for path in (home / package).rglob("*") if path.suffix in _SOURCES)
    for path in files:
        total.update(path.relative_to(home).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:_CODE_DIGITS]
