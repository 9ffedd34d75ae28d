# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What `switchgnn simulate` is asked for."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from switchgnn.host.pace import Pace
from switchgnn.host.wire.header import FEATURE_FRAME_BYTES
from switchgnn.lab.simulator.errors import SimulatorError
from switchgnn.lab.simulator.leaf_spine import LeafSpineOptions
from switchgnn.lab.simulator.setup import ETHERNET_MTU, Mtu
from switchgnn.planner.plan.manifest import STRAWMAN
from switchgnn.planner.presets import PRESETS, PlanRequest
from switchgnn.profiles import UNLIMITED, SwitchProfile

_MICRO, _MEGA = 1e-6, 1e6
PICOSECONDS = 1e12
_NO_LIMIT = math.inf
# GROUPS_PER_WORKER of p4src/dedup.p4; a switch for wider windows has more of them.
_GROUPS_APART = 32
# Of the background.
FULL_FRAME_BYTES = 1_500


@dataclass(frozen=True)
class NetworkOptions:
    """Links, switches and hosts.

    Attributes:
        bandwidth: Mbit/s of each link in each direction.
        delay: microseconds from one end of a link to the other.
        overhead: bytes that a frame takes on the link beside those that are counted.
        buffer: bytes that each queue of the switch holds, or None for no limit. What finds no
            room is lost, and sent again.
        ecn_threshold: packets of 188 bytes; what finds a longer queue is marked. None: nothing.
        window: features in flight at most, of each worker. Where hosts alone send longer frames, as
            many bytes.
        congestion_control: hosts slow down when packets come marked, and begin slowly.
        recirculation_rate: passes per second of the switch's loop, or None for no limit.
        timeout: microseconds after which what does not come is asked for, at least; None: ten
            round trips of an empty network. Only with a `buffer` is anything asked for.
        background_load: share of each link's rate that flows in the background take on average.
        background_seed: they are drawn with it.
    """

    bandwidth: float = 100_000.0
    delay: float = 2.0
    overhead: int = 0
    buffer: int | None = None
    ecn_threshold: int | None = 1_000
    window: int = 512
    congestion_control: bool = True
    recirculation_rate: float | None = None
    timeout: float | None = None
    background_load: float = 0.0
    background_seed: int = 0

    @property
    def pace(self) -> Pace:
        """Return the bounds on sending as `host/` takes them.

        Windows are open, as exchanges before this one leave them where nothing is marked.
        """
        return Pace(
            window=self.window, first_window=self.window, congestion_control=self.congestion_control
        )

    def words(self, data_frame_bytes: int = FEATURE_FRAME_BYTES) -> dict[str, object]:
        """Return the options of the models, by name.

        Args:
            data_frame_bytes: of the longest frame that workers send.

        Raises:
            SimulatorError: a number that makes no sense.
        """
        self._check(data_frame_bytes)
        delay = round(self.delay * _MICRO * PICOSECONDS)
        group = self.pace.group_size
        loop = self.recirculation_rate
        marks = self.ecn_threshold
        return {
            "bits_per_second": self.bandwidth * _MEGA,
            "delay": delay,
            "overhead_bytes": self.overhead,
            "data_frame_bytes": data_frame_bytes,
            "buffer_bytes": _NO_LIMIT if self.buffer is None else self.buffer,
            "ecn_bytes": _NO_LIMIT if marks is None else marks * FEATURE_FRAME_BYTES,
            "window": self.window,
            "group": group,
            "groups_apart": max(_GROUPS_APART, 2 * -(-self.window // group)),
            "congestion_control": int(self.congestion_control),
            "round_trip": max(1, 2 * delay),
            "timeout": 0 if self.timeout is None else round(self.timeout * _MICRO * PICOSECONDS),
            "background_load": self.background_load,
            "background_seed": self.background_seed,
            "pass": 0 if loop is None else max(1, round(PICOSECONDS / loop)),
        }

    def _check(self, data_frame_bytes: int) -> None:
        for name, number in (
            ("bandwidth", self.bandwidth),
            ("recirculation rate", self.recirculation_rate),
            ("buffer", self.buffer),
            ("window", self.window),
            ("time-out", self.timeout),
        ):
            if number is not None and not number > 0:
                raise SimulatorError(f"The {name} must be above 0, but it is {number}.")
        flows = FULL_FRAME_BYTES if self.background_load else 0
        largest = max(data_frame_bytes, flows)
        if self.buffer is not None and self.buffer < largest:
            raise SimulatorError(
                f"The buffer must hold a frame of {largest} bytes, but it is {self.buffer}."
            )
        if not 0 <= self.background_load < 1:
            raise SimulatorError(
                "The background's load is a share of the links' rate, from 0 and below 1, but it "
                f"is {self.background_load}."
            )
        if self.delay < 0 or self.overhead < 0:
            raise SimulatorError("Delay and overhead of a link cannot be below 0.")


# As the paper: hosts alone, with a switch that has neither blocks nor order, and with plans.
BNS_GCN, HOST_PARTIAL, G3 = "bns-gcn", "host-partial", "g3"
# The partition of the systems in which hosts send rows to each other.
HOSTS_ALONE = {BNS_GCN: "metis", HOST_PARTIAL: "metis", G3: "g3"}
SYSTEMS = (*HOSTS_ALONE, STRAWMAN, *PRESETS)
# What else can be asked for in place of a system's strategies.
CHOICES = {
    **dict.fromkeys(HOSTS_ALONE, ("partition",)),
    STRAWMAN: ("partition", "order"),
    **dict.fromkeys(PRESETS, ("partition", "blocks", "send", "order")),
}
# What a plan in a folder is called when nothing else is asked for.
PLANNED = "plan"


@dataclass(frozen=True)
class SimulateOptions:
    """What to simulate.

    Attributes:
        plan: a folder with a plan, or None to make one.
        graph: as load_graph takes it, or None with a plan.
        workers: their number, or None with a plan.
        slots: aggregators of the switch, 128 bytes or `slot_features` numbers each, or None with a
            plan. A slot of wider frames takes several of them.
        system: one of SYSTEMS; with a plan one of HOSTS_ALONE, AUTO, or None for the plan's own.
        layers: exchanges in an epoch.
        features: width F of what is exchanged.
        seed: for partition, blocks and order; the background's is in `network`.
        network: links, switches and hosts.
        leaf_spine: leaves and spines; None: a star, one switch with all workers.
        slot_features: numbers in a slot that holds a whole feature; None: it holds a fragment.
        asked: what takes the place of the system's strategies; the preset is the system's.
        bin_size: vertices of a bin of G3, or None for its own.
        mtu: of the frames of HOSTS_ALONE: bytes of the largest IP packet, or FRAGMENT.
        check: whether to check the plan first; None: if others could have made or changed it.
        switch: within what it has; the rate of its loop is in `network`, and its slots in `slots`.
        table_memory: the most bytes that tables may take, in place of the switch's; or None.
        lanes: numbers in the frames of a made plan, one of LANES; None: 32, or a plan's own.
    """

    plan: Path | None
    graph: str | None
    workers: int | None
    slots: int | None
    system: str | None
    layers: int
    features: int
    seed: int
    network: NetworkOptions
    leaf_spine: LeafSpineOptions | None = None
    slot_features: int | None = None
    asked: PlanRequest = field(default_factory=PlanRequest)
    bin_size: int | None = None
    mtu: Mtu = ETHERNET_MTU
    check: bool | None = None
    switch: SwitchProfile = UNLIMITED
    table_memory: int | None = None
    lanes: int | None = None


_FLOAT_BYTES = 4
# Forward, and backward for the weights and for the layer below.
_PRODUCTS = 3
# Forward and backward.
_SUMS = 2


@dataclass(frozen=True)
class Gpu:
    """A card by its data sheet, and the share of it that kernels reach.

    Attributes:
        operations_per_second: multiplications and additions of float32.
        bytes_per_second: to and from its memory.
        share: of both that is reached.
    """

    operations_per_second: float
    bytes_per_second: float
    share: float = 0.5


# NVIDIA GeForce RTX 3090, the paper's: 35.6 TFLOPS and 936 GB/s (NVIDIA GA102 whitepaper). That
# kernels reach half of either is an assumption.
RTX_3090 = Gpu(35.6e12, 936e9)


def compute_seconds(
    vertices: int, additions: float, features: int, layers: int, gpu: Gpu = RTX_3090
) -> float:
    """Return the seconds of one epoch of one worker, all layers of the same width.

    A layer multiplies the features of its vertices with a square matrix, which the card's
    operations limit, and adds up rows of neighbours, each of which is read, which memory limits.

    Args:
        vertices: of the worker.
        additions: rows that it adds up in a layer: one per edge, but for sums that the switch has
            made, which are one row each.
        features: width F.
        layers: of the network.
        gpu: the card.

    Returns:
        Seconds.
    """
    products = _PRODUCTS * 2 * vertices * features**2 / gpu.operations_per_second
    sums = _SUMS * additions * features * _FLOAT_BYTES / gpu.bytes_per_second
    return layers * (products + sums) / gpu.share


_TRACED = "flow_"


@dataclass(frozen=True)
class BackgroundFlow:
    """A flow; on request only.

    Attributes:
        began: picoseconds since the background did.
        arrived: when its last byte had.
        sender: a worker.
        receiver: another one.
        bytes: of it.
    """

    began: int
    arrived: int
    sender: int
    receiver: int
    bytes: int


@dataclass(frozen=True)
class BackgroundRun:
    """All flows: those before the exchange, during it, and what was left of them afterwards.

    Attributes:
        flows: how many began.
        flows_finished: how many were acknowledged whole.
        seconds: while which flows began.
        bytes: of the flows' frames.
        bytes_sent: the same with what was sent again.
        bytes_arrived: each once.
        bytes_repeated: that came a second time.
        bytes_lost: that found a full queue.
        lost: frames that did.
        marked: frames that found a longer queue than the threshold.
        window_cuts: how often windows of flows were narrowed.
        mean_slowdown: time of a flow over what it takes in an empty network at the links' rate.
        high_slowdown: which 99 % of the flows do not exceed.
        trace: all flows, if they were asked for.
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
    trace: tuple[BackgroundFlow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the trace as plain data."""
        return {name: value for name, value in vars(self).items() if name != "trace"}


def decode_background(told: dict[str, Any] | None) -> BackgroundRun | None:
    """Read what the models said of it, if there was any."""
    if told is None:
        return None
    plain = {name: value for name, value in told.items() if not name.startswith(_TRACED)}
    names = ("began", "arrived", "from", "to", "size")
    columns = (told.get(f"{_TRACED}{name}", ()) for name in names)
    return BackgroundRun(**plain, trace=tuple(map(BackgroundFlow, *columns)))
