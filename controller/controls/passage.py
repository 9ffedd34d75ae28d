# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Fills the table of forward.p4: where ordinary traffic goes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from ipaddress import IPv4Address

import numpy as np

from switchgnn.base.network import Network, mac_number, mac_text
from switchgnn.controller.p4runtime.layout import Layout, Table
from switchgnn.controller.p4runtime.rows import Record, Rows, Value, concatenate, make_rows, records
from switchgnn.controller.plan import SwitchPlan
from switchgnn.planner.lanes import LANES

BROADCAST = "ff:ff:ff:ff:ff:ff"
FORWARD = "forward"
FLOOD = "flood"
FLOOD_STATIONS = "flood_stations"


class Forward:
    """The station table."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("station")

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry for each address, and one for broadcasts."""
        known = [*network.neighbours[: plan.neighbours], *network.beyond]
        values: dict[str, Value] = {
            "dst_addr": [mac_number(each.station.mac) for each in known],
            "port": [each.port for each in known],
        }
        stations = make_rows(self.table, FORWARD, values, len(known))
        flood = FLOOD_STATIONS if plan.above else FLOOD
        broadcast = make_rows(self.table, flood, {"dst_addr": mac_number(BROADCAST)}, 1)
        return concatenate(self.table, stations, broadcast)

    def records(self, rows: Rows) -> list[Record]:
        """Return address and port of each entry."""
        forward = self.table.action(FORWARD)
        ports = rows.param_columns(forward)["port"]
        known = zip(rows.key_columns()["dst_addr"], rows.action_ids, ports, strict=True)
        return [
            {
                "dst_addr": mac_text(int(address)),
                "port": int(port) if action == forward.id else "all",
            }
            for address, action, port in known
        ]


DEPARTURE_ACTION = "address"


class Departure:
    """The departure table."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("departure")

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry for each neighbour's port."""
        neighbours = network.neighbours[: plan.neighbours]
        values: dict[str, Value] = {
            "port": [each.port for each in neighbours],
            "switch_mac": mac_number(network.switch.mac),
            "worker_mac": [mac_number(each.station.mac) for each in neighbours],
            "switch_ip": int(IPv4Address(network.switch.ip)),
            "worker_ip": [int(IPv4Address(each.station.ip)) for each in neighbours],
        }
        return make_rows(self.table, DEPARTURE_ACTION, values, len(neighbours))

    def records(self, rows: Rows) -> list[Record]:
        """Return port and addresses of each entry."""
        params = rows.param_columns(self.table.action(DEPARTURE_ACTION))
        return [
            {
                "port": int(port),
                "worker_mac": mac_text(int(mac)),
                "worker_ip": str(IPv4Address(int(ip))),
            }
            for port, mac, ip in zip(
                rows.key_columns()["port"],
                params["worker_mac"],
                params["worker_ip"],
                strict=True,
            )
        ]


def encode_default(table: Table, action: str, values: Mapping[str, int]) -> bytes:
    """Encode a default action: its id and its parameters.

    Args:
        table: whose default action it is.
        action: its name.
        values: its parameters by name.

    Returns:
        The bytes, as a row of the table would have them.

    Raises:
        PlanRefusedError: a number does not fit its parameter.
    """
    return make_rows(table, action, values, 1).data.tobytes()


def decode_default(table: Table, action: str, default: bytes) -> dict[str, int]:
    """Read the parameters of a default action.

    Args:
        table: whose default action it is.
        action: its name.
        default: the bytes of `encode_default`.

    Returns:
        The parameters by name.
    """
    rows = Rows(table, np.frombuffer(default, np.uint8).reshape(1, -1))
    columns = rows.param_columns(table.action(action))
    return {name: int(column[0]) for name, column in columns.items()}


CONGESTION_ACTION = "set_threshold"
DEFAULT_ECN_THRESHOLD = 32  # packets; half of a queue of BMv2


class Congestion:
    """The threshold table; it has no key, its default action is the setting."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("threshold")

    def encode(self, threshold: int) -> bytes:
        """Return the default action for a threshold in packets."""
        return encode_default(self.table, CONGESTION_ACTION, {"threshold": threshold})

    def decode(self, default: bytes) -> int:
        """Return the threshold, in packets, in a default action."""
        return decode_default(self.table, CONGESTION_ACTION, default)["threshold"]


class Outcome(IntEnum):
    """What became of a frame that a port received; every frame has exactly one."""

    AGGREGATED = 0
    DUPLICATE = 1
    STALE = 2
    WRONG_PORT = 3
    UNKNOWN_VERTEX = 4
    UNKNOWN_BLOCK = 5
    WRONG_COUNT = 6
    DONE_COLLECTED = 7
    DONE_REPEATED = 8
    WRONG_PLAN = 9
    FORWARDED = 10
    FLOODED = 11
    UNKNOWN_STATION = 12
    MALFORMED = 13
    UNKNOWN_KIND = 14
    RECALLED = 15
    FETCHED = 16
    RESENT = 17
    NOTICED = 18
    PASSED_ON = 19
    WRONG_SESSION = 20
    WRONG_INCARNATION = 21
    WRONG_MAGNITUDE = 22
    WRONG_TURN = 23
    WRONG_NEXT = 24


COUNTER = "outcome"


def decode_outcomes(cells: Sequence[int]) -> Mapping[Outcome, int]:
    """Return the frames of each outcome from the cells of the counter."""
    return {outcome: cells[outcome] for outcome in Outcome}


WORKER_ACTION = "set_worker"
ABOVE = "set_above"


def neighbour_ports(plan: SwitchPlan, network: Network) -> list[int]:
    """Return the port of each neighbour of the switch: in a star, of each worker."""
    return [each.port for each in network.neighbours[: plan.neighbours]]


class Worker:
    """The worker table."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("worker")

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry for each neighbour."""
        ports, below = neighbour_ports(plan, network), len(plan.below)
        values = {
            "port": ports[:below],
            "worker": list(plan.below),
            "worker_bit": list(plan.members),
        }
        workers = make_rows(self.table, WORKER_ACTION, values, below)
        if not plan.above:
            return workers
        above = make_rows(self.table, ABOVE, {"port": ports[below:]}, plan.above)
        return concatenate(self.table, workers, above)

    def records(self, rows: Rows) -> list[Record]:
        """Return port and worker of each entry."""
        own = self.table.action(WORKER_ACTION)
        workers = rows.param_columns(own)["worker"]
        known = zip(rows.key_columns()["port"], rows.action_ids, workers, strict=True)
        return [
            {"port": int(port), "worker": int(worker) if action == own.id else "above"}
            for port, action, worker in known
        ]


SOURCE_ACTION = "set_source"
# One cell for each source.
LAST_TAGS_REGISTER = "last_tag"


class Source:
    """The source table."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("source")

    def count(self, plan: SwitchPlan) -> int:
        """Return the number of entries."""
        return len(plan.switch.source_vertex)

    def rows(self, plan: SwitchPlan, network: Network) -> Rows:
        """Return one entry per vertex and partial sum; its place is its register index."""
        switch = plan.switch
        ports = np.array(neighbour_ports(plan, network), np.int64)
        values: dict[str, Value] = {
            "src_id": switch.source_vertex,
            "port": ports[switch.source_worker],
            "index": np.arange(len(switch.source_vertex)),
        }
        return make_rows(self.table, SOURCE_ACTION, values, len(switch.source_vertex))

    def records(self, rows: Rows) -> list[Record]:
        """Return vertex, port and register index of each entry."""
        return records(rows.key_columns() | rows.param_columns(self.table.action(SOURCE_ACTION)))


SESSION_ACTION = "set_session"


@dataclass(frozen=True)
class SessionEntry:
    """What a switch says of the install it serves.

    Attributes:
        session: grows with every install; 0 before the first one.
        plan: first 32 bits of the plan's digest; 0 when the tables serve no plan.
        members: one bit for each worker of the plan.
        magnitude_limit: the largest magnitude, as the bits of a float32, that a worker may
            report.
        width: of the slots, and of the widest frames: 8 << width numbers.
        any_turn: 1 where the switch may have forgotten whose turn it is, or never hears of it.
    """

    session: int
    plan: int
    members: int
    magnitude_limit: int
    width: int = 0
    any_turn: int = 0

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self.members.bit_count()


class Session:
    """The session table; it has no key, its default action is the setting."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("session")

    @property
    def max_session(self) -> int:
        """The last session number; only loading the program anew frees the lower ones."""
        return (1 << self._bits("session")) - 1

    @property
    def max_workers(self) -> int:
        """How many workers the bit map of members has room for."""
        return self._bits("members")

    def entry(
        self, session: int, plan: SwitchPlan, largest_feature: float | None = None
    ) -> SessionEntry:
        """Return the entry for a plan.

        Args:
            session: the number.
            plan: what the switch serves.
            largest_feature: the largest magnitude that a worker may report; None: any of which
                no sum overflows float32.

        Returns:
            The entry.
        """
        most = float(np.finfo(np.float32).max) / plan.manifest.max_fan_in
        most = most if largest_feature is None else min(largest_feature, most)
        limit = np.nextafter(np.float32(most), np.float32(0))
        return SessionEntry(
            session,
            plan.number,
            sum(plan.members),
            int(limit.view(np.uint32)),
            LANES.index(plan.manifest.lanes),
            any_turn=int(not plan.hears_barriers),
        )

    def encode(self, entry: SessionEntry) -> bytes:
        """Return the default action for an entry."""
        return encode_default(self.table, SESSION_ACTION, asdict(entry))

    def decode(self, default: bytes) -> SessionEntry:
        """Return the entry in a default action."""
        return SessionEntry(**decode_default(self.table, SESSION_ACTION, default))

    def closed(self, default: bytes) -> bytes:
        """Return the default action that keeps the number but serves no plan."""
        return self.encode(SessionEntry(self.decode(default).session, 0, 0, 0))

    def _bits(self, name: str) -> int:
        params = self.table.action(SESSION_ACTION).params
        return next(field.bits for field in params if field.name == name)


TIER_ACTION = "set_tier"


class Tier:
    """The tier table; it has no key, its default action is the setting."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("tier")

    def encode(self, plan: SwitchPlan, network: Network) -> bytes:
        """Return the default action that says where the switch stands.

        The first spine collects the barrier of all.
        """
        ports, everybody = neighbour_ports(plan, network), (1 << plan.manifest.workers) - 1
        values = {
            "above": ports[len(plan.below)] if plan.above else 0,
            "number": plan.part.number if plan.part else 0,
            "elsewhere": everybody & ~sum(plan.members),
            "leaves": int(plan.part is not None and not plan.above),
        }
        return encode_default(self.table, TIER_ACTION, values)

    def decode(self, default: bytes) -> dict[str, int]:
        """Return the setting in a default action by name."""
        return decode_default(self.table, TIER_ACTION, default)
