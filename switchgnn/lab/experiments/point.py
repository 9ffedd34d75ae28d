"""One simulation: everything that its results depend on, except versions."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import switchgnn
from switchgnn.base.machine import version_of
from switchgnn.host.base.pace import CongestionRule
from switchgnn.lab.simulator.compile import compiled_models
from switchgnn.lab.simulator.request import HOSTS_ALONE, SPINE
from switchgnn.planner.presets import AUTO, BEST
from switchgnn.profiles import UNLIMITED

_DIGITS = 12
_NAMED = ("graph", "workers", "system")
# What a plan depends on: always, and within a switch that has limits.
_PLAN = ("graph", "workers", "seed", "system", "memory", "order", "slot_features", "switch")
_WITHIN = ("bandwidth", "recirculation_rate", "table_memory", "leaves", "spines")
# The same of the best plan, whose blocks are for leaves and spines.
_OVER = ("leaves", "spines", "completion")


@dataclass(frozen=True)
class SimulationPoint:
    """A simulation; fields without a comment are those of SimulateOptions and NetworkOptions."""

    graph: str
    workers: int
    system: str
    seed: int = 0  # for partition, blocks, order and background
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

    @property
    def name(self) -> str:
        """Return the name of its result file: no two points have the same."""
        graph = self.graph.replace(":", "-").replace("/", "-")
        return f"{graph}-{self.workers}-{self.system}-{_digest(asdict(self))}"

    @property
    def plan(self) -> str | None:
        """Return a key that points share if they have the same plan; None: no plan is made."""
        if self.system in (*HOSTS_ALONE, AUTO):
            return None
        within = () if self.switch == UNLIMITED.name else _WITHIN
        over = _OVER if self.system == BEST else ()
        return _digest({name: getattr(self, name) for name in {*_PLAN, *within, *over}})

    def __str__(self) -> str:
        """Return what differs from the defaults, for progress output."""
        told = [(it.name, getattr(self, it.name)) for it in fields(self) if it.name not in _NAMED]
        usual = {it.name: it.default for it in fields(self)}
        others = [f", {name} {value}" for name, value in told if value != usual[name]]
        return f"{self.graph}, {self.workers} workers, {self.system}{''.join(others)}"


def _digest(words: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()[:_DIGITS]


# Plans and the duration of exchanges depend on these.
_PACKAGES = ("host", "p4src", "planner", "profiles", "lab/simulator")
_FILES = ("lab/experiments/process.py",)
_LIBRARIES = ("switchgnn", "numpy", "pymetis", "mtkahypar")
_CODE_DIGITS = 16


def current_versions() -> dict[str, str]:
    """Return the versions of libraries, of the models as they are compiled, and of the code.

    Raises:
        SimulatorError: a compiler is missing.
    """
    models = compiled_models().name
    libraries = {name: version_of(name) or "not installed" for name in _LIBRARIES}
    return {**libraries, "models": models, "code": _code()}


def _code() -> str:
    total = hashlib.sha256()
    home = Path(switchgnn.__file__).parent
    files = [home / name for name in _FILES]
    for package in _PACKAGES:
        files += sorted(
            path for path in (home / package).rglob("*") if path.suffix in (".py", ".toml")
        )
    for path in files:
        total.update(path.relative_to(home).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:_CODE_DIGITS]
