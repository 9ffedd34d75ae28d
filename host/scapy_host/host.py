"""A worker in Scapy, for `switchgnn run --hosts scapy`: the protocol in one short file.

Begin with `aggregate_fixed`; docs/protocol.md and docs/recovery.md define the packets. The hosts of
`host/innetwork` are many times as fast, and repair sums that lost a contribution in the switch.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scapy.layers.l2 import Ether

from switchgnn.base.array_types import Float32s, Int32s
from switchgnn.host.base.errors import TransportError
from switchgnn.host.base.operations import Operation
from switchgnn.host.innetwork import errors, exchange, fixed_point, outgoing, responder
from switchgnn.host.innetwork.barrier import where
from switchgnn.host.links.transport import check_rows
from switchgnn.host.scapy_host.layers import BarrierLayer, Fragment, Layers, SwitchGNN, to_switch
from switchgnn.host.wire import header
from switchgnn.host.wire.header import OPENING_BLOCK, Kind, Unit
from switchgnn.planner import Direction, Manifest, WorkerPart

RETRY = 0.2  # seconds without news after which a worker asks again
QUESTIONS = 16  # sums that it asks for at once


class ScapyHost(exchange.InNetworkExchange):
    """One worker's end of exchanges; it has plan, link and counters like a native host."""

    def __init__(self, manifest: Manifest, part: WorkerPart, *link: Any, **options: Any) -> None:  # noqa: ANN401
        if manifest.rows > 1 or manifest.pools > 1 or part.leaves_any:
            raise TransportError(
                "Hosts in Scapy send one row in a frame and one block at a time, all over the "
                "switch: plan with --rows 1 --pools 1."
            )
        super().__init__(manifest, part, *link, **options)
        self._unit = Unit(0, OPENING_BLOCK, 0)  # a fragment of a block that is under way
        self._magnitude = 0  # float32 bits of the round's largest feature
        self._values: responder.Fragments = {}  # int32[n, W], by fragment: the round's features
        self._answer: Layers = None  # of the barrier
        self._group = self._accepted = 0  # the group sent last, and its features that arrived
        self._sums: dict[int, Int32s] = {}  # int32[W] of the block, by vertex
        self._slots: dict[int, int] = {}  # contributions to other sums so far

    def aggregate_fixed(
        self,
        features: Float32s,
        direction: Direction = Direction.FORWARD,
        _tensor_id: int = 0,
        operation: Operation = Operation.SUM,
    ) -> fixed_point.FixedSums:
        """Exchange one round; see ``InNetworkExchange.aggregate_fixed``."""
        operation.refuse("A host in Scapy")
        check_rows(features, len(self._part.vertices), self._part.worker)
        width, blocks = features.shape[1], self._manifest.direction(direction).block_numbers
        words = header.fragment_words(width, self._manifest.lanes)
        opening = Unit(self._unit.round + 1, OPENING_BLOCK, 0)
        units = [Unit(opening.round, block, word) for word in words for block in blocks]
        units = units or [Unit(opening.round, blocks.stop, 0)]
        self._magnitude = fixed_point.largest_magnitude(features)
        self._wait_at_barrier(opening, units[0])
        largest = fixed_point.magnitude_from_bits(self._magnitude)
        scale = fixed_point.FixedPoint.for_exchange(self._manifest.max_fan_in, largest)
        self._values = outgoing.cut_into_fragments(scale.encode(features), words)
        total = {word: np.zeros_like(values) for word, values in self._values.items()}
        for unit, following in zip(units, [*units[1:], opening], strict=True):
            self._exchange_block(unit)
            for vertex, numbers in self._sums.items():
                plan = self._schedules[unit.block - 1]
                total[unit.fragment][plan.receive_row[plan.receive_index[vertex]]] += numbers
            self._wait_at_barrier(unit, following)
            self._blocks += 1
            if self._on_block is not None:
                self._on_block(unit.round, unit.block, header.fragment_number(unit.fragment))
        self._rounds += 1
        return fixed_point.FixedSums(np.hstack(list(total.values()))[:, :width], scale)

    def _wait_at_barrier(self, unit: Unit, following: Unit) -> None:
        """Report a unit as done until all workers are; take the largest magnitude of all."""
        self._unit, self._answer = unit, None
        body = BarrierLayer(magnitude=self._magnitude, plan=self._manifest.number)
        fields = {"Src_id": self._part.worker, "Dst_id": self._endpoint.incarnation, "Is_ACK": 1}
        fields |= {"Count": following.block, "Feature_group": following.fragment}
        self.counters.barriers += 1
        done = partial(self._send, Kind.DONE, fields, body)
        self.counters.barriers_repeated += self._wait(lambda: self._answer is not None, done)
        self._magnitude = self._answer.magnitude

    def _exchange_block(self, unit: Unit) -> None:
        """Send the features of a block by priority, group by group; wait for its sums."""
        self._unit, self._sums, self._slots = unit, {}, {}
        if unit.block > len(self._schedules):
            return  # no worker has a boundary vertex
        first, end = self._part.send_indptr[unit.block - 1 : unit.block + 1].tolist()
        features = list(range(first, end))  # by priority
        size = self._endpoint.pace.group_size
        for self._group in range(-(-len(features) // size)):
            self._send_group(features[self._group * size : (self._group + 1) * size])
        awaited = self._schedules[unit.block - 1].receive_count
        self._wait(lambda: len(self._sums) == len(awaited), self._recall, RETRY)

    def _send_group(self, features: list[int]) -> None:
        """Send features of the plan, rows of vertices or sums of several, until all are added."""
        self._accepted = 0
        self.counters.features_sent += len(features)
        send = partial(self._send_features, features)
        repeated = self._wait(lambda: self._accepted == len(features), send)
        self.counters.features_resent += repeated * len(features)

    def _send_features(self, features: list[int]) -> None:
        part, values = self._part, self._values[self._unit.fragment]
        for at in features:
            rows = part.send_row[slice(*part.send_row_indptr[at : at + 2])]
            numbers = values[rows].sum(axis=0, dtype=np.int32).tolist()
            fields = {"Src_id": int(part.send_source[at]), "Dst_id": int(part.send_destination[at])}
            fields |= {"Count": len(rows), "Feature_group": self._group}
            fields |= {"Echo": int(at == features[-1])}  # the last one asks for an ACK
            self._send(Kind.FEATURE, fields, Fragment(lanes=numbers))

    def _recall(self) -> None:
        """Ask the switch for sums that may have been lost on the way down."""
        awaited = self._schedules[self._unit.block - 1].receive_vertex.tolist()
        for vertex in [each for each in awaited if each not in self._sums][:QUESTIONS]:
            self._send(Kind.RECALL, {"Dst_id": vertex, "Is_Fetch": 1, "Resend": 1})
            self.counters.recalls += 1

    def _wait(self, done: Callable[[], bool], ask: Callable[[], None], after: float = 0.0) -> int:
        """Ask until `done`, after each RETRY without news; return how often it asked again."""
        news_at = self._endpoint.clock.now()
        ask_at, again = news_at + after, -1
        while not done():
            now = self._endpoint.clock.now()
            if now >= ask_at:
                ask()
                ask_at, again = now + RETRY, again + 1
            if now - news_at > self._endpoint.pace.timeout:
                raise errors.ExchangeTimeoutError(
                    f"{where(self._unit)}: nothing new on {self._link.name} for "
                    f"{self._endpoint.pace.timeout:g} s, after {len(self._sums)} sums of the block "
                    "arrived. Is the switch running, with the plan installed?"
                )
            frame = self._link.receive(RETRY)
            if frame is not None and self._receive(bytes(frame)):
                news_at = self._endpoint.clock.now()
                ask_at = news_at + RETRY
        return again

    def _receive(self, frame: bytes) -> bool:
        """Take a packet, by the method for its kind; return whether it is news."""
        sound = header.unpack_header(frame)
        if sound is None:
            self.counters.malformed += 1
            return False
        take = getattr(self, f"_take_{sound.kind.name.lower()}", None)
        ours = sound.session == self._endpoint.session & header.SESSION_MASK
        if take is None or not ours or sound.unit != self._unit:
            self.counters.late += 1
            return False
        return bool(take(Ether(frame)[SwitchGNN]))

    def _take_advance(self, packet: Layers) -> bool:
        self._answer = packet[BarrierLayer]
        return True

    def _take_waiting(self, packet: Layers) -> bool:
        """Take a sign of life of the switch, or its refusal."""
        plan, reason = packet[BarrierLayer].plan, header.Refusal(packet.Count)
        if reason or plan not in (0, self._manifest.number):
            raise errors.BarrierError(
                f"{where(self._unit)}: the switch, which serves plan {plan:08x}, refuses worker "
                f"{self._part.worker}: {reason.name} (docs/recovery.md)."
            )
        return True

    def _take_ack(self, packet: Layers) -> bool:
        before = self._accepted
        if packet.Is_ACK and packet.Feature_group == self._group:
            self._accepted = max(before, packet.Src_id if packet.Kind == Kind.SUM else packet.Count)
        return self._accepted > before

    def _take_sum(self, packet: Layers) -> bool:
        plan, vertex = self._schedules[self._unit.block - 1], packet.Dst_id
        self._take_ack(packet)  # of a vertex cut
        index = plan.receive_index.get(vertex)
        if index is None or packet.Count != plan.receive_count[index] or vertex in self._sums:
            self.counters.repeated += 1
            return False
        self._sums[vertex] = np.array(packet[Fragment].lanes, dtype=np.int32)
        self.counters.sums_received += 1
        self.counters.sums_recalled += packet.Is_Fetch
        return True

    def _take_missing(self, packet: Layers) -> bool:
        before, self._slots[packet.Dst_id] = self._slots.get(packet.Dst_id), packet.Count
        return before != self._slots[packet.Dst_id]

    def _send(self, kind: Kind, fields: dict[str, int], body: Layers = None) -> None:
        self._link.send(bytes(to_switch(self._endpoint, self._unit, kind, fields, body)))
