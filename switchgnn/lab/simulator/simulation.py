"""Compiles the models when they are first needed, runs them, and reads their measurements."""

import subprocess
from dataclasses import dataclass, replace
from functools import partial
from operator import add
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from switchgnn.base import native
from switchgnn.base.files import private_folder, writing
from switchgnn.base.interruptible import interruptible
from switchgnn.lab.simulator import request
from switchgnn.lab.simulator.setup import Setup

MODELS = Path(__file__).parent / "models"
_FLAGS = ("-std=c++20", "-O2", "-x", "c++")


def compiled_models() -> Path:
    """Return the program that runs the models, compiled if need be.

    Raises:
        SimulatorError: a compiler is missing, or fails.
    """
    try:
        compiler = native.needed_compiler("A simulation")
        made_of = (compiler, *_FLAGS, *native.sources_in(MODELS))
        command = (compiler, *_FLAGS, "-I", str(MODELS), "-")
        compile_to = partial(
            native.compile_unit, command, '#include "simulation.cc"\n', "the models"
        )
        return native.compiled_once(native.cache_folder("simulator"), "models", made_of, compile_to)
    except native.CompilerError as error:
        raise request.SimulatorError(f"{str(error).rstrip('.')}.") from error


# (bytes, per cent of the flows that have no more).
HADOOP = (
    *((0, 0.0), (100, 1.0), (200, 2.0), (300, 5.0), (350, 15.0), (400, 20.0), (500, 30.0)),
    *((600, 40.0), (700, 50.0), (1_000, 60.0), (2_000, 67.0), (7_000, 70.0), (30_000, 72.0)),
    *((50_000, 82.0), (80_000, 87.0), (120_000, 90.0), (300_000, 95.0), (1_000_000, 97.5)),
    *((2_000_000, 99.0), (10_000_000, 100.0)),
)
_PER_CENT = 100


@dataclass(frozen=True)
class TimeSeries:
    """Samples at equal intervals; on a leaf-spine `slots` are those of the fullest switch."""

    seconds: tuple[float, ...]
    queue_bytes: tuple[float, ...]
    slots: tuple[int, ...]
    sums: tuple[int, ...]
    overflowed: tuple[int, ...]
    link_bytes: tuple[float, ...]  # so far on the links of workers, both ways, without queues


@dataclass(frozen=True)
class Arrival:
    """The arrival of a packet; listed on request only."""

    picoseconds: int  # when
    at_switch: bool  # at the switch, or else at the worker
    # at the other end of the link, or at this one. On a link between switches its number in
    # models/fabrics.h, which is no worker's.
    worker: int
    kind: int  # `Kind` of host/wire/header.py
    id: int  # FEATURE: its index among all packets. SUM, and FEATURE at a worker: the row.
    count: int  # contributions in it; see models/link.h


@dataclass(frozen=True)
class InsideLinks:
    """Traffic on the links between leaves and spines: one number per link, leaf by leaf."""

    frames_up: tuple[int, ...]
    bytes_up: tuple[int, ...]
    frames_down: tuple[int, ...]
    bytes_down: tuple[int, ...]
    sums_up: tuple[int, ...]
    features_up: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """The bytes on all of them, both ways."""
        return sum(self.bytes_up) + sum(self.bytes_down)


@dataclass(frozen=True)
class BackgroundFlow:
    """A flow, in picoseconds since the background began; listed on request only."""

    began: int
    arrived: int
    sender: int
    receiver: int
    bytes: int


@dataclass(frozen=True)
class BackgroundRun:
    """All flows that began before or during the exchange, simulated to their ends.

    docs/simulator-output.md describes the numbers; `trace` has all flows, if they were asked for.
    """

    flows: int
    flows_finished: int
    seconds: float
    bytes: int
    bytes_sent: int
    bytes_arrived: int
    bytes_repeated: int
    bytes_lost: int
    lost: int
    marked: int
    window_cuts: int
    mean_slowdown: float
    high_slowdown: float
    trace: tuple[BackgroundFlow, ...] = ()


@dataclass(frozen=True)
class SimulationRun:
    """The measurements of one exchange; docs/simulator-output.md explains them.

    Tuples have one number per worker: `finished` picoseconds until it was through, frames and bytes
    by sender. `trace` has all arrivals, if they were asked for.
    """

    finished: tuple[int, ...]
    frames_up: tuple[int, ...]
    bytes_up: tuple[int, ...]
    frames_down: tuple[int, ...]
    bytes_down: tuple[int, ...]
    features_up: tuple[int, ...]
    features_down: tuple[int, ...]
    feature_bytes_down: tuple[int, ...]
    sums_down: tuple[int, ...]
    sum_bytes_down: tuple[int, ...]
    notices: tuple[int, ...]
    barriers: int
    sums: int
    overflowed: int
    passes: int
    contributions: int
    loop_passes: int
    max_loop_queue: int
    max_slots: int
    max_queue_bytes: float
    max_port_queue_bytes: float
    marked: int
    window_cuts: int
    lost: int
    recalled: int
    sent_again: int
    repeated: int
    events: int
    wall_seconds: float
    peak_memory_bytes: int
    series: TimeSeries
    trace: tuple[Arrival, ...]
    inside: InsideLinks | None = None
    background: BackgroundRun | None = None

    @property
    def seconds(self) -> float:
        """Return the time until the last worker was through."""
        return max(self.finished) / request.PICOSECONDS


_Record = TypeVar("_Record", SimulationRun, InsideLinks)
# Of TimeSeries, what counts from the beginning.
_SO_FAR = ("sums", "overflowed", "link_bytes")


def one_after_another(first: SimulationRun, second: SimulationRun) -> SimulationRun:
    """Return the measurements of two exchanges without background, the second after the first."""
    series = {}
    for name, values in vars(first.series).items():
        last = values[-1] if name in _SO_FAR and values else 0
        last = first.seconds if name == "seconds" else last
        series[name] = values + tuple(last + each for each in getattr(second.series, name))
    finished = tuple(max(first.finished) + each for each in second.finished)
    return replace(_added(first, second), finished=finished, series=TimeSeries(**series))


def _added(one: _Record, other: _Record) -> _Record:
    """Add up all numbers, but of maxima keep the larger one."""
    found: dict[str, Any] = {}
    for name, value in vars(one).items():
        also = getattr(other, name)
        if isinstance(value, InsideLinks):
            found[name] = _added(value, also)
        elif isinstance(value, tuple):
            found[name] = tuple(map(add, value, also))
        elif isinstance(value, int | float):
            found[name] = max(value, also) if name.startswith(("max", "peak")) else value + also
    return replace(one, **found)


def run_simulation(
    setup: Setup,
    options: request.NetworkOptions,
    *,
    leaf_spine: request.LeafSpineOptions | None = None,
    opening: bool = False,
    trace: bool = False,
) -> SimulationRun:
    """Simulate one exchange.

    Args:
        setup: the sends, and the sums that they contribute to.
        options: links, switches and hosts.
        leaf_spine: leaves and spines; None: a star.
        opening: begin with a barrier, like the first exchange of a tensor.
        trace: list all arrivals.

    Raises:
        SimulatorError: a compiler is missing, the network cannot be, or the simulation ends early.
        PlannerError: the leaf-spine does not fit the workers.
    """
    if leaf_spine is not None:
        leaf_spine.attach(setup.workers)
    program = compiled_models()
    sizes = {}
    if options.background_load:
        # The points as `models/background.h` reads them; shares from 0 to 1.
        size, share = np.array(HADOOP, dtype=np.float64).T
        sizes = {"flow_bytes": size.copy(), "flow_share": share / _PER_CENT}
    # The arrays may take hundreds of megabytes: Ctrl-C must not leave them.
    with interruptible(), private_folder("switchgnn-") as folder:
        with writing(folder):
            for name, array in {**setup.arrays, **sizes}.items():
                array.tofile(folder / name)
        words = {
            # The models ignore options that they do not know.
            **vars(setup),
            **vars(leaf_spine or request.STAR),
            **options.words(setup.data_frame_bytes),
            **{"arrays": folder, "opening": opening, "trace": trace},
            "fragment_bytes": ",".join(map(str, setup.fragment_bytes)),
            "row_bytes": ",".join(map(str, setup.row_bytes)),
            "bank_slots": ",".join(map(str, setup.bank_slots)),
        }
        result = subprocess.run(
            [program, *(f"{name}={value}" for name, value in words.items())],
            capture_output=True,
            text=True,
            check=False,
        )
    if result.returncode != 0:
        told = result.stderr.strip() or f"it ended with code {result.returncode}."
        raise request.SimulatorError(f"The simulation stopped: {told}")
    return msgspec.json.decode(result.stdout, type=SimulationRun)
