"""Arbitrary frames at workers: in the parser, and in the middle of an exchange."""

from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchgnn.host.links import WrappedLink
from switchgnn.host.wire import header as wire
from switchgnn.host.wire.addresses import Addresses
from tests.fuzz.frames import generator_for
from tests.fuzz.team import ALL, POOLS, WORKERS, Team, star_world
from tests.host.addresses import SESSION, SWITCH
from tests.host.model_switch import ModelSwitch
from tests.simulation.network import body_end

AT_EACH_WORKER = 400_000 if ALL else 5_000
examples = settings(
    max_examples=10_000 if ALL else 400, derandomize=True, deadline=None, database=None
)


def check_sound(frame):
    """What the parser reads must pack to the same bytes."""
    header = wire.unpack_header(frame)
    if header is None:
        return
    end = body_end(frame)
    assert header.pack(bytes(frame[wire.BODY_AT : end])) == bytes(frame[wire.HEADER_AT : end])
    if header.kind in wire.BARRIER_KINDS:
        assert wire.BarrierBody.unpack(frame, header.kind).pack() == bytes(
            frame[wire.BODY_AT : end]
        )


# An envelope that the parser accepts, so that its payload is parsed.
ENVELOPE = bytes(12) + b"\x08\0\x45" + bytes(8) + b"\xfd" + bytes(10)


@examples
@given(st.one_of(st.binary(max_size=300), st.binary(max_size=200).map(ENVELOPE.__add__)))
def test_arbitrary_bytes(frame):
    check_sound(frame)
    check_sound(memoryview(frame))


ARRIVALS = (
    *("sums_received", "features_fetched", "features_served", "late", "repeated", "wrong"),
    *("malformed", "foreign", "heard", "ignored", "noticed"),
)
# Kinds that only a switch may send, and workers accept.
BELIEVED = (wire.Kind.SUM, wire.Kind.ADVANCE, wire.Kind.WAITING, wire.Kind.ACK, wire.Kind.MISSING)


class FloodedLink(WrappedLink):
    """Puts shots before what arrives on a link.

    Workers trust the switch: they believe a sound frame about a barrier that they have still to
    pass, with its numbers and its congestion mark, if it is of a kind that comes from the switch
    or a fetched feature. Exactly those shots are left out.
    """

    def __init__(self, link, world, generator, shots):
        super().__init__(link)
        # The last barrier that the worker has passed, by pool.
        self.finished = [wire.Unit(0, *opening) for opening in world.facts.units[:POOLS]]
        self.injected = self.malformed = self.delivered = 0
        self._generator = generator
        self._shots = shots
        self._barriers = set(world.facts.units)

    @property
    def empty(self):
        return self.injected >= self._shots

    def receive(self, seconds):
        frame = None
        # Real frames are interleaved, or the worker would see none before the last shot.
        if not self.empty and self._generator.random.random() < 0.9:
            frame = self._shot()
        if frame is None:
            frame = self._link.receive(seconds)
        self.delivered += frame is not None
        return frame

    def _shot(self):
        frame = self._generator.shot().aim(SESSION, max(self.finished).round + 1)
        header = wire.unpack_header(frame)
        if header is None:
            self.malformed += 1
        elif self._is_believed(header):
            return None
        self.injected += 1
        return memoryview(frame)

    def _is_believed(self, header):
        if header.unit[1:] not in self._barriers:
            return False
        finished = self.finished[wire.pool_of(header.fragment)]
        if header.unit == finished and header.kind is wire.Kind.WAITING:
            return True
        if header.unit.order <= finished.order:
            return False
        fetched = header.kind is wire.Kind.FEATURE and header.resend
        return header.kind in BELIEVED or fetched or header.ecn


class TolerantSwitch(ModelSwitch):
    """Drops answers to fetches that no worker made, as the switch does."""

    def _relay(self, header, frame):
        if (header.block_id, header.dst_id) in self.destination:
            super()._relay(header, frame)


def flooded_team(shots):
    world = star_world()
    stations = [each.station for each in world.network.neighbours]
    switch = TolerantSwitch(world.plan.switch, WORKERS, world.facts.plan_id)
    links = []
    for worker in range(WORKERS):
        macs = {"source": SWITCH.mac, "target": stations[worker].mac}
        generator = generator_for(world, 10 + worker, **macs, longest=9216)
        links.append(FloodedLink(switch.link(worker), world, generator, shots))

    words = {(block, wire.fragment_number(word)): word for block, word in world.facts.units}

    def finished(worker, round_number, block, fragment):
        word = words[block, fragment]
        links[worker].finished[wire.pool_of(word)] = wire.Unit(round_number, block, word)

    def addresses(worker):
        return Addresses(stations[worker], SWITCH)

    return Team(world, links, addresses, session=SESSION, on_block=finished), links


@pytest.mark.timeout(2000 if ALL else 200)
def test_no_sum_changes_and_every_frame_is_counted():
    team, links = flooded_team(AT_EACH_WORKER)
    while not all(link.empty for link in links):
        team.play()
        team.check()
    for exchange, link in zip(team.exchanges, links, strict=True):
        counters = asdict(exchange.counters)
        kept = len(exchange._units.inbox._kept)
        assert link.injected == AT_EACH_WORKER
        assert exchange.counters.malformed == link.malformed
        assert sum(counters[name] for name in ARRIVALS if name in counters) + kept == link.delivered
    assert team.total()["wrong"] > 0
    assert team.total()["late"] > 0
