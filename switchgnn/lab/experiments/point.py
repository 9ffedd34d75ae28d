"""One simulation: everything that its numbers depend on, but for the versions."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import switchgnn
from switchgnn.base.machine import version_of
from switchgnn.host.direct.framing import USUAL_MTU
from switchgnn.lab.simulator.compile import compiled_models
from switchgnn.lab.simulator.request import HOSTS_ALONE, LEAF, SPINE
from switchgnn.planner.presets import AUTO, BEST
from switchgnn.profiles import UNLIMITED

_DIGITS = 12
# What a plan depends on: always, and within a switch that has limits.
_PLAN = ("graph", "workers", "seed", "system", "memory", "order", "slot_features", "switch")
_WITHIN = ("bandwidth", "recirculation_rate", "table_memory", "leaves", "spines")
# The same of the best plan, whose blocks are for leaves and spines.
_OVER = ("leaves", "spines", "completion")


@dataclass(frozen=True)
class SimulationPoint:
    """What is simulated once, as SimulateOptions and NetworkOptions have it, but for these."""

    graph: str
    workers: int
    system: str
    memory: int | None  # bytes of the switch; None: it never overflows, or has no part in it
    order: str | None  # a key of ORDER_STRATEGIES instead of the system's, or None
    seed: int  # for partition, blocks, order and background
    layers: int
    features: int
    bandwidth: float
    delay: float
    congestion_control: bool
    recirculation_rate: float | None
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
        """Return a description for progress output."""
        memory = "" if self.memory is None else f", {self.memory / 1e6:g} MB"
        slot = "" if self.slot_features is None else f" of slots of {self.slot_features} numbers"
        order = "" if self.order is None else f", order {self.order}"
        loop = "" if self.recirculation_rate is None else f", {self.recirculation_rate:g} passes/s"
        completed = " that complete sums" if self.completion == LEAF else ""
        inside = f", {self.leaves} leaves{completed}" if self.leaves else ""
        flows = f", background {self.background:g}" if self.background else ""
        frames = "" if self.mtu in (None, USUAL_MTU) else f", MTU {self.mtu}"
        blind = "" if self.congestion_control else ", no control"
        switch = "" if self.switch == UNLIMITED.name else f", {self.switch}"
        network = f"{memory}{slot}{order}{switch}{loop}{inside}{flows}{frames}{blind}"
        return f"{self.graph}, {self.workers} workers, {self.system}{network}"


def _digest(words: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()[:_DIGITS]


# A plan, and the time of an exchange, come of these.
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
