"""The options of a simulation."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.names import no_such
from switchgnn.host.base.pace import CongestionRule, Pace
from switchgnn.host.direct.framing import USUAL_MTU, Framing
from switchgnn.host.wire.header import FEATURE_FRAME_BYTES
from switchgnn.planner.base.lanes import BANK_LANES, banks_of_slot, frame_bytes
from switchgnn.planner.costs.seconds import NetworkModel
from switchgnn.planner.partition.leaf_spine import LeafSpine, even_leaf_spine
from switchgnn.planner.plan.manifest import STRAWMAN
from switchgnn.planner.presets import PRESETS, VERTEX_CUT, PlanContext, PlanRequest, slot_bytes
from switchgnn.profiles import UNLIMITED, SwitchProfile

_MICRO, _MEGA, _BITS = 1e-6, 1e6, 8
PICOSECONDS = 1e12
_NO_LIMIT = math.inf
# GROUPS_PER_WORKER of p4src/dedup.p4; a switch for wider windows has more of them.
_GROUPS_APART = 32
# Of the background.
FULL_FRAME_BYTES = 1_500
# Which switches complete the sums whose contributions come from several leaves.
SPINE, LEAF = "spine", "leaf"
COMPLETIONS = (SPINE, LEAF)


class SimulatorError(SwitchGNNError):
    """A request that cannot be simulated, or a simulation that failed, in one sentence."""


@dataclass(frozen=True)
class NetworkOptions:
    """Links, switches and hosts."""

    bandwidth: float = 100_000.0  # Mbit/s of each link in each direction
    delay: float = 2.0  # microseconds from one end of a link to the other
    overhead: int = 0  # bytes that a frame takes on the link beside those that are counted
    # bytes that each queue of the switch holds, or None for no limit. What finds no room is lost,
    # and sent again.
    buffer: int | None = None
    # packets of 188 bytes; what finds a longer queue is marked. None: nothing.
    ecn_threshold: int | None = 1_000
    # features in flight at most, of each worker. Where hosts alone send longer frames, as many
    # bytes.
    window: int = 512
    congestion: CongestionRule = CongestionRule.DCTCP  # what hosts do when packets come marked
    # passes per second of the switch's loop, or None for no limit
    recirculation_rate: float | None = None
    # microseconds after which what does not come is asked for, at least; None: ten round trips of
    # an empty network. Only with a `buffer` is anything asked for.
    timeout: float | None = None
    # share of each link's rate that flows in the background take on average
    background_load: float = 0.0
    background_seed: int = 0  # they are drawn with it

    @property
    def pace(self) -> Pace:
        """Return the bounds on sending as `host/` takes them.

        Windows are open, as exchanges before this one leave them where nothing is marked.
        """
        return Pace(window=self.window, first_window=self.window, congestion=self.congestion)

    def words(self, data_frame_bytes: int = FEATURE_FRAME_BYTES) -> dict[str, object]:
        """Return the models' options by name; `data_frame_bytes` is the longest frame."""
        self._check(data_frame_bytes)
        delay = round(self.delay * _MICRO * PICOSECONDS)
        group = self.pace.group_size
        loop, marks = self.recirculation_rate, self.ecn_threshold
        return {
            **vars(self),
            "congestion": self.congestion.value,
            "bits_per_second": self.bandwidth * _MEGA,
            "delay": delay,
            "overhead_bytes": self.overhead,
            "data_frame_bytes": data_frame_bytes,
            "buffer_bytes": _NO_LIMIT if self.buffer is None else self.buffer,
            "ecn_bytes": _NO_LIMIT if marks is None else marks * FEATURE_FRAME_BYTES,
            "group": group,
            "groups_apart": max(_GROUPS_APART, 2 * -(-self.window // group)),
            "round_trip": max(1, 2 * delay),
            "timeout": 0 if self.timeout is None else round(self.timeout * _MICRO * PICOSECONDS),
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


@dataclass(frozen=True)
class LeafSpineOptions:
    """Each leaf has a link to each spine, and an equal share of the workers."""

    leaves: int = 8  # switches that workers have their links to, and that add
    spines: int = 8  # switches between the leaves
    # `spine`: spines complete sums that cross them, as the P4 program has it. `leaf`: the leaf of
    # the destination does, a variant that the P4 program does not implement.
    completion: str = SPINE

    def attach(self, workers: int) -> LeafSpine:
        """Return which worker is attached to which leaf, in the planner's terms.

        Raises:
            SimulatorError: there is no such completion.
            PlannerError: there is a leaf without a worker, or neither leaf nor spine.
        """
        if self.completion not in COMPLETIONS:
            raise SimulatorError(no_such("completion", self.completion, COMPLETIONS))
        return even_leaf_spine(workers, self.leaves, self.spines)


STAR = LeafSpineOptions(leaves=0, spines=0)

# The paper's systems: hosts alone, a switch without blocks or order, and plans.
BNS_GCN, HOST_PARTIAL, G3 = "bns-gcn", "host-partial", "g3"
# Hosts that cut vertices: mirrors send masters their sums, and get the totals.
CDFGNN = "cdfgnn"
# The partition of each system in which hosts exchange rows directly.
HOSTS_ALONE = {BNS_GCN: "metis", HOST_PARTIAL: "metis", G3: "g3", CDFGNN: VERTEX_CUT}
SYSTEMS = (*HOSTS_ALONE, STRAWMAN, *PRESETS)
# The strategies of each system that can be replaced.
CHOICES = {
    **dict.fromkeys(HOSTS_ALONE, ("partition",)),
    STRAWMAN: ("partition", "order"),
    **dict.fromkeys(PRESETS, ("partition", "blocks", "send", "order")),
}
# The name of a plan that is read from a folder and simulated unchanged.
PLANNED = "plan"


@dataclass(frozen=True)
class SimulateOptions:
    """What to simulate."""

    plan: Path | None  # a folder with a plan, or None to make one
    graph: str | None  # as load_graph takes it, or None with a plan
    workers: int | None  # their number, or None with a plan
    # aggregators of the switch, 128 bytes or `slot_features` numbers each, or None with a plan. A
    # slot of wider frames takes several of them.
    slots: int | None
    # one of SYSTEMS; with a plan one of HOSTS_ALONE, AUTO, or None for the plan's own
    system: str | None
    layers: int  # of a model: as many forward exchanges, and one backward exchange less
    features: int  # width F of what is exchanged
    seed: int  # for partition, blocks and order; the background's is in `network`
    network: NetworkOptions  # links, switches and hosts
    # leaves and spines; None: a star, one switch with all workers
    leaf_spine: LeafSpineOptions | None = None
    # numbers in a slot that holds a whole feature; None: it holds a fragment
    slot_features: int | None = None
    # replaces the system's strategies; the preset is the system's. Without lanes frames of a made
    # plan have 32 numbers.
    request: PlanRequest = field(default_factory=PlanRequest)
    bin_size: int | None = None  # vertices of a bin of G3, or None for its own
    framing: Framing = field(default_factory=Framing)  # of the rows of HOSTS_ALONE
    phases: bool = False  # whether these are sent in phases
    sampling: float = 1.0  # share of the vertices whose rows are sent forward; see Sampling
    # whether to check the plan first; None: if others could have made or changed it
    check: bool | None = None
    # within what it has; the rate of its loop is in `network`, and its slots in `slots`
    switch: SwitchProfile = UNLIMITED
    # the most bytes that tables may take, in place of the switch's; or None
    table_memory: int | None = None

    @property
    def limited(self) -> bool:
        """Whether the switch has limits."""
        return self.switch != UNLIMITED or self.table_memory is not None

    def attached(self, workers: int) -> LeafSpine | None:
        """Return which worker is attached to which leaf; None: a star."""
        return None if self.leaf_spine is None else self.leaf_spine.attach(workers)

    def context(self, workers: int, slots: int) -> PlanContext:
        """Return what a plan depends on; within a switch, rates of links and loop are a part of it.

        `slots` are those of a switch for which `slots` of the options has no number.
        """
        lanes, banks = self.request.lanes or BANK_LANES, self.switch.banks
        rows = self.request.rows or 1
        slots, least = self.slots or slots, self.switch.least_lanes
        wide = banks_of_slot(max(lanes, least))
        if wide > banks:
            raise SimulatorError(
                f"A slot of {lanes} numbers takes {wide} banks, but the switch {self.switch.name} "
                f"has {banks}: give fewer --lanes."
            )
        limits: dict[str, Any] = {}
        if self.switch != UNLIMITED:
            limits = {
                "link_rate": self.network.bandwidth * _MEGA / (_BITS * frame_bytes(lanes, rows)),
                "recirculation_rate": self.network.recirculation_rate,
                "within": True,
            }
        return PlanContext(
            workers,
            # A slot for a whole feature holds it however wide its frames are.
            slots if self.slot_features is None else slots * wide,
            leaf_spine=self.attached(workers),
            banks=banks,
            lanes=lanes,
            least_lanes=least,
            rows=rows,
            pools=self.request.pools or 1,
            leaves_complete=self.leaf_spine is not None and self.leaf_spine.completion == LEAF,
            **limits,
        )

    @property
    def network_model(self) -> NetworkModel:
        """The simulated star, for predictions, which ignore losses."""
        network = self.network
        return NetworkModel(
            bits_per_second=network.bandwidth * _MEGA,
            delay=network.delay * _MICRO,
            passes_per_second=network.recirculation_rate,
            mtu=self.framing.mtu or USUAL_MTU,
            window=network.window,
        )

    def bytes_of_slot(self, lanes: int) -> int:
        """Return the memory of a slot: whole banks, or a whole feature's numbers."""
        size = slot_bytes(self.slot_features)
        return size * banks_of_slot(lanes) if self.slot_features is None else size
