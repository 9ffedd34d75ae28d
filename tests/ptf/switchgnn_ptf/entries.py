"""Entries and default actions of tables; remembers what to remove."""

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from ipaddress import IPv4Address

from finsy.proto import p4r

from switchgnn.base.array_types import UInt8s
from switchgnn.base.network import Network, mac_number
from switchgnn.controller import P4RuntimeClient
from switchgnn.controller.base.place import ALONE, Place
from switchgnn.controller.controls.banks import Banks
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.controls.job import Jobs
from switchgnn.controller.controls.loop import result_group
from switchgnn.controller.controls.session import NO_SESSION, SessionEntry
from switchgnn.controller.p4runtime.layout import Table
from switchgnn.controller.p4runtime.rows import (
    DELETE,
    INSERT,
    MODIFY,
    default_update,
    encode_default,
    make_rows,
    row_update,
)
from switchgnn.host.wire.header import LANES
from switchgnn.planner.base.lanes import ROWS
from tests.ptf.switchgnn_ptf.packets import PORTS, WIDTHS

BANKS = 8  # of the cases
FIRST_HARVEST_GROUP = 47  # of p4src/tofino/loop.p4
LARGEST_FLOAT = 0x7F7FFFFF
# Blocks and workers have any number that a packet can name.
HOME = replace(ALONE, ports=PORTS, last_block=2**16 - 1)
"""The place of the only job of most cases; worker w is on port w + 1."""


class Entries:
    """The entries of one test, written by ``flush``, for the job at ``place`` and its blocks."""

    def __init__(self, client: P4RuntimeClient, place: Place = HOME) -> None:
        self.place = place
        self._client = client
        self._layout = client.get_layout()
        self._job = Jobs(self._layout)
        self.one_bank = Fanout(self._layout).banks == 1
        """Whether the program has one bank, which then has the slots of all banks of a case."""
        self._apart = Banks(self._layout).slots_per_bank // BANKS
        # With one bank, the next hops by job, block and source.
        self._hops: dict[tuple[int, int, int], itertools.count[int]] = defaultdict(itertools.count)
        self._pending: list[p4r.Update] = []
        self._undo: list[p4r.Update] = []
        self._sessions: dict[int, SessionEntry] = {}
        self._newest = 0

    @contextlib.contextmanager
    def of(self, place: Place) -> Iterator[None]:
        before, self.place = self.place, place
        try:
            yield
        finally:
            self.place = before

    def flush(self) -> None:
        pending, self._pending = self._pending, []
        if pending:
            self._client.write(pending)

    def remove(self) -> None:
        """Take away all that was added, newest first."""
        self._pending = list(reversed(self._undo))
        self._undo, self._sessions = [], {}
        self._hops.clear()
        self.flush()

    def read_session(self) -> int:
        """Return the newest session number that the switch has had."""
        return self._job.newest(self._client.read_default(self._job.table))

    def admit(self) -> None:
        self._insert(self._job.table, self._job.encode(self.place).data[0])

    def set_session(
        self,
        *,
        session: int,
        plan: int,
        members: int,
        magnitude_limit: int = LARGEST_FLOAT,
        lanes: int = LANES,
        rows: int = 1,
        any_tag: int = 1,
        pools: int = 1,
        pool_slots: int = 0,
    ) -> None:
        """Serve a session; until a barrier is complete, any tag has its turn by default."""
        # The number stays, so that the next test can take a higher one.
        self._newest = max(self._newest, session)
        self._pending.append(default_update(self._job.table, self._job.encode_newest(self._newest)))
        frames = WIDTHS[lanes], ROWS.index(rows)
        limits = magnitude_limit, *frames, any_tag, pools - 1, pool_slots, self._session.reduces
        self._serve(SessionEntry(session, plan, members, *limits))

    def set(self, name: str, action: str, **values: int) -> None:
        table = self._layout.table(name)
        self._pending.append(default_update(table, encode_default(table, action, values)))
        self._undo.append(default_update(table, table.default or b""))

    def set_expected(self, contributions: int) -> None:
        self._serve(replace(self._session, reduces=contributions))

    def add(self, name: str, action: str, **values: int) -> None:
        self._insert(*self._row(name, action, values))

    def put(self, name: str, action: str, **values: int) -> None:
        """Add an entry to a table, or change the one that was added."""
        table, row = self._row(name, action, values)
        if row_update(DELETE, table, row) in self._undo:
            self._pending.append(row_update(MODIFY, table, row))
        else:
            self._insert(table, row)

    def add_worker(self, *, port: int, worker: int, members: int = 0) -> None:
        """Attach a worker to a port, or a leaf with its workers, a bit each."""
        bits = members or 1 << worker
        self.add("worker", "set_worker", port=port, worker=worker, worker_bit=bits)

    def add_distant(self, *, vertex: int, port: int, above: int, **entry: int) -> None:
        """Place, where a part is added here: ``bank``, ``slot`` and ``expected``."""
        entry = {"block_id": 1, "dst_id": vertex, "bank": 0, "slot": 0, "expected": 0, **entry}
        self.add("destination", "set_distant", **entry, port=port, above=above)

    def add_senders(self, senders: Iterable[int], **key: int) -> None:
        """Let these workers send partial sums for a destination."""
        workers = list(senders)
        if self.one_bank:
            for worker in workers:
                self.add("partial", "allow", **key, worker=worker + self.place.first_worker)
        elif workers:
            bits = sum(1 << worker for worker in workers)
            self.add("partial", "set_senders", **key, senders=bits)

    def add_fanout(
        self,
        *,
        source: int,
        slots: Mapping[int, tuple[int, int]],
        block: int = 1,
        rows: Mapping[int, int] | None = None,
        hop: int = 0,
        last_hop: bool = True,
    ) -> None:
        """Add a hop. ``slots`` maps a bank to (slot, expected count), ``rows`` to a row.

        With one bank, each slot has a hop of its own, in the order of calls and banks.
        """
        parts = [slots]
        if self.one_bank:
            moved = {bank: (self._slot(bank, slots[bank][0]), slots[bank][1]) for bank in slots}
            parts = [{0: moved[bank]} for bank in sorted(moved)] or [{}]
        for number, part in enumerate(parts, 1):
            own = next(self._hops[self.place.job, block, source]) if self.one_bank else hop
            entry = {"block_id": block, "src_id": source, "hop": own}
            entry["last_hop"] = int(last_hop and number == len(parts))
            entry["last_bank"] = max(part, default=0)
            for bank in range(1 if self.one_bank else BANKS):
                slot, expected = part.get(bank, (0, 0))
                entry |= {f"slot{bank}": slot, f"expected{bank}": expected}
                entry[f"row{bank}"] = (rows or {}).get(bank, 0)
            self.add("fanout", "set_slots", **entry)

    def _slot(self, bank: int, slot: int) -> int:
        """Return the number that a slot of a bank has in the only one."""
        return bank * self._apart + slot

    def add_rewrite(self, *, port: int, network: Network) -> None:
        station = next(each.station for each in network.neighbours if each.port == port)
        addresses = {}
        for end, own in {"switch": network.switch, "worker": station}.items():
            addresses[f"{end}_mac"] = mac_number(own.mac)
            addresses[f"{end}_ip"] = int(IPv4Address(own.ip))
        self.add("rewrite", "address", port=port, **addresses)

    def add_result_groups(self, port: int) -> None:
        for lane, loop_port in enumerate(self.place.loop_ports):
            self.add_group(result_group(port) + lane, [port, loop_port])

    def add_harvest_group(self) -> None:
        """Let a harvest, replica 1, leave before its feature, so that sums are in order."""
        both = dict.fromkeys((1, 0), self.place.loop_ports[0])
        self.add_group(FIRST_HARVEST_GROUP + self.place.job, both)

    def add_group(self, number: int, ports: Iterable[int] | Mapping[int, int]) -> None:
        """Add a group of ports, or of ports by the numbers of their replicas."""
        self._pending.append(_group(INSERT, number, ports))
        self._undo.append(_group(DELETE, number, ()))

    def change_group(self, number: int, ports: Iterable[int]) -> None:
        self._pending.append(_group(MODIFY, number, ports))

    @property
    def _session(self) -> SessionEntry:
        return self._sessions.get(self.place.job, NO_SESSION)

    def _serve(self, entry: SessionEntry) -> None:
        self._sessions[self.place.job] = entry
        self.put("session", "set_session", **asdict(entry))

    def _row(self, name: str, action: str, values: Mapping[str, int]) -> tuple[Table, UInt8s]:
        table = self._layout.table(name)
        own = {"job": self.place.job, **values}
        if self.one_bank and "bank" in own:
            own |= {"bank": 0, "slot": self._slot(own["bank"], own["slot"])}
        if "block_id" in own:
            own["block_id"] += self.place.first_block
        return table, make_rows(table, action, own, 1).data[0]

    def _insert(self, table: Table, row: UInt8s) -> None:
        self._pending.append(row_update(INSERT, table, row))
        self._undo.append(row_update(DELETE, table, row))


def _group(
    kind: "p4r.Update.Type.ValueType", number: int, ports: Iterable[int] | Mapping[int, int]
) -> p4r.Update:
    entity = p4r.Entity()
    group = entity.packet_replication_engine_entry.multicast_group_entry
    group.multicast_group_id = number
    replicas = ports if isinstance(ports, Mapping) else dict(enumerate(ports))
    for instance, port in replicas.items():
        group.replicas.add(egress_port=port, instance=instance)
    return p4r.Update(type=kind, entity=entity)
