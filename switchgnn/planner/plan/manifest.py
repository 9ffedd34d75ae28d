"""The manifest of a plan, and its JSON form."""

import json
from dataclasses import asdict, dataclass, replace

from switchgnn.base.records import RecordError, make_record, parse_json, record_digest
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.base.lanes import LANES, ROWS
from switchgnn.planner.plan.banks import BANKS, MOST_POOLS, room_of, slots_per_bank

PLAN_FORMAT = "switchgnn-plan"
PLAN_VERSION = 9
# The block strategy whose plans are for a switch that hands its slots out.
STRAWMAN = "strawman"
# The sends of plans for a vertex cut: each replica's partial sum, to all that have one.
REPLICAS = "replicas"


@dataclass(frozen=True)
class GraphRecord:
    """The graph that the plan is for; `digest` is Graph.digest()."""

    name: str
    vertices: int
    edges: int
    digest: str


@dataclass(frozen=True)
class PartitionRecord:
    """The partition of the vertices."""

    method: str  # a key of PARTITION_STRATEGIES, or `given`
    seed: int  # of the partition
    digest: str  # SHA-256 in hex over the assignment


@dataclass(frozen=True)
class StrategyRecord:
    """The names of the strategies, their seed, and the weight of a contribution."""

    blocks: str
    send: str
    weight: float
    order: str
    seed: int


@dataclass(frozen=True)
class Prediction:
    """The cost of one exchange of one direction without loss.

    Packets are data packets per fragment, one number per worker; `host_*` are those without the
    switch.
    """

    boundary_vertices: int  # with a neighbour on another worker, also where it is left to the hosts
    boundary_edges: int  # between workers, also those left to the hosts
    packets_up: tuple[int, ...]  # features and partial sums that each worker sends
    packets_down: tuple[int, ...]  # sums that each receives; with the strawman a lower bound
    host_packets_up: tuple[int, ...]
    host_packets_down: tuple[int, ...]
    passes: int  # through ingress per fragment, without extra ones of slots completed early
    contributions: int  # additions per fragment: one per edge, or one per partial sum
    entries: int  # table entries of the direction's blocks, one per pass


@dataclass(frozen=True)
class DirectionRecord:
    """One direction of a plan."""

    first_block: int
    last_block: int  # `first_block` - 1 if it has no blocks
    prediction: Prediction

    @property
    def block_numbers(self) -> range:
        """The numbers of its blocks, ascending."""
        return range(self.first_block, self.last_block + 1)


@dataclass(frozen=True)
class Manifest:
    """The manifest of a plan."""

    format: str
    version: int
    workers: int
    # aggregators of 32 numbers (of each switch of a leaf-spine) for blocks or a strawman
    slots: int
    pools: int  # of equal size that divide them; as many units are in flight at once
    banks: int  # 8
    slots_per_bank: int  # the size of a bank that the plan needs, for all pools
    lanes: int  # numbers of the widest row of a frame; a slot of more than 32 takes several banks
    rows: int  # of a frame; more than one are a bundle
    blocks: int  # their number over all directions, B
    # by the values of Direction; two directions with the same edges share their blocks
    directions: dict[str, DirectionRecord]
    max_fan_in: int  # the most remote neighbours of a vertex in any direction, at least 1
    graph: GraphRecord
    partition: PartitionRecord
    strategy: StrategyRecord
    program: str  # the digest of the P4 program, as given by the caller
    files: dict[str, str]  # SHA-256 in hex of every other file of the plan
    digest: str  # SHA-256 in hex over the canonical JSON of all fields but this one

    @property
    def strawman(self) -> bool:
        """Whether destinations compete for `slots`."""
        return self.strategy.blocks == STRAWMAN

    @property
    def replicated(self) -> bool:
        """Whether the plan is for a vertex cut: all that contribute to a sum await it."""
        return self.strategy.send == REPLICAS

    @property
    def number(self) -> int:
        """The first 32 bits of the digest, by which switch and workers know the plan."""
        return int(self.digest[:8], 16)

    @property
    def room(self) -> int:
        """The sums that have a slot of one pool at once."""
        return room_of(self.slots, self.lanes, self.pools)

    @property
    def pool_slots(self) -> int:
        """The slots of a pool in each bank; the plan's slot numbers are within a pool."""
        return self.slots_per_bank // self.pools

    def direction(self, direction: Direction) -> DirectionRecord:
        """Return the record of a direction; raise PlannerError if the plan has none."""
        try:
            return self.directions[direction.value]
        except KeyError:
            raise PlannerError(
                f"The plan has no {direction.value} blocks; plan again for both directions."
            ) from None


def _check(manifest: Manifest, where: str) -> None:
    """Refuse sizes that no plan has, and names with control characters for a terminal."""
    pools, lanes, rows = manifest.pools, manifest.lanes, manifest.rows
    possible = {
        "workers": manifest.workers >= 1,
        "banks": manifest.banks == BANKS,
        "pools": 1 <= pools <= MOST_POOLS,
        "slots_per_bank": pools
        and manifest.slots_per_bank == slots_per_bank(manifest.slots, pools),
        "lanes": lanes in LANES,
        "rows": rows in ROWS and rows * lanes <= LANES[-1],
    }
    for name, right in possible.items():
        if not right:
            raise PlannerError(f"{where} has {getattr(manifest, name)} {name}; plan again.")
    strategy = manifest.strategy
    names = (manifest.graph.name, manifest.partition.method, strategy.blocks, strategy.send)
    for name in (*names, strategy.order):
        if not name.isprintable():
            raise PlannerError(
                f"{where} has the name {name!r}, which cannot be printed; plan again."
            )


def seal(manifest: Manifest) -> Manifest:
    """Return the manifest with its digest filled in."""
    return replace(manifest, digest=record_digest(manifest))


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the content of plan.json."""
    return (json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n").encode("ascii")


def decode_manifest(data: bytes, where: str) -> Manifest:
    """Read plan.json and verify its format, version and digest."""
    try:
        content = parse_json(data)
    except RecordError as error:
        raise PlannerError(f"{where} is not the manifest of a plan: {error}.") from error
    if not isinstance(content, dict) or content.get("format") != PLAN_FORMAT:
        raise PlannerError(f"{where} is not the manifest of a plan.")
    if content.get("version") != PLAN_VERSION:
        raise PlannerError(
            f"{where} is a plan of version {content.get('version')!r}, but only version "
            f"{PLAN_VERSION} can be read; plan again."
        )
    try:
        manifest = make_record(Manifest, content)
    except RecordError as error:
        raise PlannerError(f"{where} is damaged: {error}; plan again.") from error
    if manifest.digest != record_digest(manifest):
        raise PlannerError(f"{where} was changed after it was written; plan again.")
    _check(manifest, where)
    return manifest
