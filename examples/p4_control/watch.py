"""Fills the table of watch.p4, and reads its counter: how many frames a vertex sends."""

from finsy.proto import p4r

from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.p4runtime.layout import Layout, Table
from switchgnn.controller.p4runtime.rows import decode_default, encode_default

ACTION = "set_watch"
COUNTER = "watched"
NOBODY = 0


class Watch:
    """The watch table; it has no key, its default action is the setting."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("watch")
        self._counter = layout.counter(COUNTER)

    def encode(self, vertex: int) -> bytes:
        """Return the default action that watches a vertex, or NOBODY."""
        return encode_default(self.table, ACTION, {"vertex": vertex})

    def decode(self, default: bytes) -> int:
        """Return the vertex in a default action."""
        return decode_default(self.table, ACTION, default)["vertex"]

    def read(self, client: P4RuntimeClient) -> int:
        """Return the frames of all vertices that were watched since the program was loaded.

        Raises:
            ControllerError: the switch refuses.
        """
        asked = p4r.CounterEntry(counter_id=self._counter.id)
        found = client.read([p4r.Entity(counter_entry=asked)])
        return sum(entity.counter_entry.data.packet_count for entity in found)
