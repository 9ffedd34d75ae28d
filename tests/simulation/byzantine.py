"""Byzantine workers: random and mutated frames, from a seed."""

import struct
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random

from switchgnn.host.wire import header as wire
from switchgnn.host.wire.addresses import Addresses
from switchgnn.planner.base.lanes import LANES
from switchgnn.planner.plan.banks import MOST_POOLS
from switchgnn.planner.plan.plan import Plan, SwitchPart
from tests.simulation import network
from tests.simulation.parts.switch import VirtualSwitch
from tests.simulation.scenario import Scenario
from tests.simulation.subject import PlannedSubject
from tests.simulation.timing import SECOND, Scheduler


@dataclass(frozen=True)
class Facts:
    """The numbers that frames about a plan are made of."""

    # workers, blocks: their numbers
    workers: int
    blocks: int
    # block and word of the openings and units of a round, in order, of all directions
    units: tuple[tuple[int, int], ...]
    plan_id: int  # the first 32 bits of the plan's digest
    owner: dict[int, int]  # worker of each source, vertex or partial sum
    counts: dict[tuple[int, int], int]  # the Count of every (block, source) that is sent
    # (block, vertex) of every sum, with its worker and its count
    sums: dict[tuple[int, int], tuple[int, int]]


def facts_of(plan: Plan, width: int, more: Iterable[SwitchPart] = ()) -> Facts:
    part = plan.switch
    counts: dict[tuple[int, int], int] = {}
    for each in (part, *more):
        entries = zip(each.entry_block, each.entry_source, each.entry_count, strict=True)
        counts.update({(int(block), int(source)): int(n) for block, source, n in entries})
    results = zip(part.result_block.tolist(), part.result_vertex.tolist(), strict=True)
    expected = zip(part.result_worker.tolist(), part.result_expected.tolist(), strict=True)
    manifest, words = plan.manifest, wire.fragment_words(width, plan.manifest.lanes)
    directions = dict.fromkeys(each.block_numbers for each in manifest.directions.values())
    return Facts(
        workers=manifest.workers,
        blocks=manifest.blocks,
        units=(
            *((wire.OPENING_BLOCK, wire.in_pool(0, pool)) for pool in range(manifest.pools)),
            *chain(*(network.units_of(blocks, words, manifest.pools) for blocks in directions)),
        ),
        plan_id=plan.manifest.number,
        owner=dict(zip(part.source_vertex.tolist(), part.source_worker.tolist(), strict=True)),
        counts=counts,
        sums=dict(zip(results, expected, strict=True)),
    )


ON_A_WIRE = 1514
_TAGGED_BYTES = 20
# The shares of past frames that are changed and sealed, or damaged; and of changed bodies.
_DIFFERENT, _DAMAGED, _LIES = 0.7, 0.15, 0.3
# The share of packets about the plan in any pool.
_ANY_POOL = 0.1
_ROUND = struct.Struct(">I")
_REDUCE_KINDS = (wire.Kind.REDUCE, wire.Kind.REDUCED, wire.Kind.REDUCING)
# Twice as many as the first tensors take, from the number of slots on.
_FRAGMENTS = 2048
_BOUNDARIES = {
    size: [0, 1, 2, half - 1, half, half + 1, top - 1, top]
    for size in (1, 2, 4)
    for half, top in [(1 << 8 * size - 1, (1 << 8 * size) - 1)]
}


@dataclass(frozen=True)
class Shot:
    """A frame, and how far its round is ahead of the current one; None: as it is."""

    frame: bytes
    ahead: int | None = None

    def aim(self, session: int, round_number: int) -> bytes:
        if self.ahead is None:
            return self.frame
        aimed = bytearray(self.frame)
        # The numbers of fragments of all-reduces are small.
        of_reduces = self.frame[wire.KIND_AT] & wire.KIND_MASK in _REDUCE_KINDS
        ahead = self.ahead & 1 if of_reduces else (round_number + self.ahead) & wire.LAST_ROUND
        _ROUND.pack_into(aimed, network.ROUND_AT, wire.session_and_round(session, ahead))
        network.seal(aimed)
        return bytes(aimed)


class Generator:
    """Draws shots."""

    def __init__(
        self,
        facts: Facts,
        random: Random,
        *,
        templates: Mapping[int, bytes],
        ordinary: Sequence[bytes],
        longest: int = ON_A_WIRE,
    ) -> None:
        self.random = random
        self._facts = facts
        self._longest = longest
        self._templates = templates
        self._ordinary = ordinary
        self._sources = sorted(facts.counts)
        self._sums = sorted(facts.sums)
        self._words: dict[int, list[int]] = {}
        for block, word in facts.units:
            self._words.setdefault(block, []).append(word)
        self._vertices = sorted({*facts.owner, *(vertex for _, vertex in self._sums)})
        self._mutations: list[Callable[[bytearray], None]] = [
            *(self._change_fields, self._flip_bits, self._flip_bits_and_seal, self._truncate),
            *(self._pad, self._change_ipv4, self._insert_options, self._change_ethertype),
            *(self._change_protocol, self._tag_for_a_vlan, self._lengthen, self._empty),
        ]

    def shot(self) -> Shot:
        sort = self.random.random()
        if sort < 0.45:
            return Shot(bytes(self.packet()), self._ahead())
        if sort < 0.55:
            return Shot(self._fit(bytearray(self.random.choice(self._ordinary))))
        frame = self.packet() if sort < 0.95 else bytearray(self.random.choice(self._ordinary))
        mutate = self.random.choice(self._mutations)
        mutate(frame)
        sealed = mutate in (self._change_fields, self._pad)
        return Shot(
            self._fit(frame), self._ahead() if sealed and len(frame) >= wire.BODY_AT else None
        )

    def shots(self, count: int) -> list[Shot]:
        return [self.shot() for _ in range(count)]

    def changed(self, frame: bytes) -> bytes:
        """Return a past frame unchanged, slightly changed, or damaged."""
        draw, changed = self.random, bytearray(frame)
        sort = draw.random()
        if sort < _DIFFERENT and len(frame) >= wire.BODY_AT:
            self._nudge(changed)
        elif sort < _DIFFERENT + _DAMAGED and len(frame) > _TAGGED_BYTES:
            draw.choice(self._mutations)(changed)
        return self._fit(changed)

    def ahead(self, done: bytes) -> bytes:
        """Return a past `done` for a unit in which its worker is not, or not yet."""
        draw, frame = self.random, bytearray(done)
        block = draw.randrange(self._facts.blocks + 1)
        network.write_header(
            frame,
            round=network.read_field(frame, "round") + draw.choice((0, 0, 1, 1, 2)),
            block_id=block,
            fragment=self._word(block),
        )
        magnitude = draw.choice((0, 0, 0x3F800000, self._number(4)))
        frame[wire.BODY_AT : wire.BODY_AT + 4] = magnitude.to_bytes(4, "big")
        network.seal(frame)
        return bytes(frame)

    def _word(self, block: int) -> int:
        """Draw the word of a fragment of a block, sometimes in a pool that it never has."""
        draw = self.random
        word = draw.choice(self._words[block])
        return wire.in_pool(word, draw.randrange(MOST_POOLS)) if draw.random() < _ANY_POOL else word

    def _nudge(self, frame: bytearray) -> None:
        """Change some fields of a packet, so that it may still be believed."""
        draw = self.random
        names = draw.sample(sorted(network.FIELDS), draw.choice((0, 1, 1, 1, 2, 3)))
        for name in names:
            old = network.read_field(frame, name)
            step = draw.choice((1, 1, 1, -1, 2, 8))
            numbers = [old + step, old + step, old ^ step, self._number(network.FIELDS[name][1])]
            if name in ("src_id", "dst_id"):
                numbers += [draw.choice(self._sources)[1], draw.choice(self._vertices)]
            if name == "flags_kind":
                numbers += [
                    old & 0xF0 | draw.choice(list(wire.Kind)),
                    old ^ 0x10 << draw.randrange(4),
                ]
            if name == "fragment":
                numbers += [wire.in_pool(old, pool) for pool in range(MOST_POOLS)]
            network.write_header(frame, **{name: draw.choice(numbers)})
        end = network.body_end(frame)
        frame.extend(bytes(max(0, end - len(frame))))
        if end > wire.BODY_AT and (not names or draw.random() < _LIES):
            at = draw.randrange(wire.BODY_AT, end, 4)
            frame[at : at + 4] = draw.choice((bytes(4), draw.randbytes(4), b"\x3f\x80\0\0"))
        network.seal(frame)

    def packet(self, kind: int | None = None) -> bytearray:
        """Draw a sound packet, whose subject may not exist."""
        draw = self.random
        if kind is None:
            kind = (
                draw.randrange(1, 1 + max(wire.Kind))
                if draw.random() < 0.95
                else draw.randrange(16)
            )
        frame = bytearray(self._templates[kind])
        network.write_header(frame, **self._numbers(kind))
        if kind in wire.LANE_KINDS:
            frame[wire.BODY_AT :] = draw.randbytes(network.body_end(frame) - wire.BODY_AT)
        elif kind in wire.BARRIER_KINDS:
            self._fill_barrier(frame)
        network.seal(frame)
        return frame

    def _numbers(self, kind: int) -> dict[str, int]:
        draw, facts = self.random, self._facts
        block, vertex = draw.choice(self._sources)
        sum_block, destination = draw.choice(self._sums)
        count = facts.counts[block, vertex]
        if kind in (wire.Kind.SUM, wire.Kind.RECALL, wire.Kind.FETCH, wire.Kind.MISSING):
            block = sum_block
            count = facts.sums[block, destination][1] if kind == wire.Kind.SUM else 0
        if kind in (*wire.BARRIER_KINDS, *_REDUCE_KINDS):
            vertex = draw.randrange(facts.workers)
            block = draw.randrange(facts.blocks + 1)
        word = self._word(block)
        if kind in _REDUCE_KINDS:
            vertex, destination = draw.randrange(facts.workers), 0
            block, word = draw.randrange(_FRAGMENTS), draw.randrange(len(LANES))
            count = draw.choice((0, 1, facts.workers))
        numbers = {
            "src_id": vertex,
            "dst_id": destination,
            "block_id": block,
            "count": count,
            "flags_kind": draw.choice((0, 0, 1, 4, 8, draw.randrange(16))) << 4 | kind,
            "version_bits_level_echo": wire.VERSION << 4 | draw.randrange(2),
            "fragment": word,
            "group": draw.randrange(4),
            "round": draw.randrange(1, 100),
        }
        if draw.random() < 0.3:
            name = draw.choice(("src_id", "dst_id", "block_id", "count", "fragment", "group"))
            numbers[name] = self._number(network.FIELDS[name][1])
        return numbers

    def _fill_barrier(self, frame: bytearray) -> None:
        draw = self.random
        struct.pack_into(
            ">IIIQQ",
            frame,
            wire.BODY_AT,
            draw.choice((0x3F800000, self._number(4))),
            self._facts.plan_id if draw.random() < 0.8 else self._number(4),
            draw.choice((1, draw.randrange(100), self._number(4))),
            self._number(4),
            draw.choice((7, self._number(4))),
        )
        if frame[wire.KIND_AT] & wire.KIND_MASK in wire.HEARTBEAT_KINDS:
            at = wire.BODY_AT + wire.BARRIER_BYTES
            frame[at : at + wire.HEARTBEATS_BYTES] = draw.randbytes(wire.HEARTBEATS_BYTES)

    def _number(self, size: int) -> int:
        draw = self.random
        if draw.random() < 0.5:
            return draw.choice(_BOUNDARIES[size])
        if draw.random() < 0.5:
            return draw.choice(self._vertices) & 0xFF
        return draw.getrandbits(8 * size)

    def _ahead(self) -> int | None:
        return self.random.choice((0, 0, 0, 0, 1, 1, -1, 2**23, None))

    def _fit(self, frame: bytearray) -> bytes:
        return bytes(frame[: self._longest])

    def _change_fields(self, frame: bytearray) -> None:
        frame.extend(bytes(max(0, wire.BODY_AT - len(frame))))
        for name in self.random.sample(sorted(network.FIELDS), self.random.randint(1, 3)):
            network.write_header(frame, **{name: self._number(network.FIELDS[name][1])})
        frame.extend(bytes(max(0, network.body_end(frame) - len(frame))))
        network.seal(frame)

    def _flip_bits(self, frame: bytearray) -> None:
        for _ in range(self.random.randint(1, 8)):
            bit = self.random.randrange(8 * network.ETHERTYPE_AT, 8 * len(frame))
            frame[bit // 8] ^= 1 << bit % 8

    def _flip_bits_and_seal(self, frame: bytearray) -> None:
        self._flip_bits(frame)
        network.seal(frame)

    def _truncate(self, frame: bytearray) -> None:
        borders = (14, wire.HEADER_AT, network.CHECKSUM_AT, wire.BODY_AT, len(frame))
        border = self.random.choice(borders)
        end = self.random.choice(
            (border - 1, border, border + 1, self.random.randrange(len(frame)))
        )
        del frame[end:]

    def _pad(self, frame: bytearray) -> None:
        frame.extend(self.random.randbytes(self.random.choice((1, 3, 64, 1300))))
        del frame[self._longest :]

    def _change_ipv4(self, frame: bytearray) -> None:
        frame.extend(bytes(max(0, wire.HEADER_AT - len(frame))))
        draw = self.random
        what = draw.randrange(4)
        if what == 0:
            frame[network.VERSION_IHL_AT] = draw.getrandbits(8)
        elif what == 1:
            frame[network.LENGTH_AT : network.LENGTH_AT + 2] = draw.randbytes(2)
        elif what == 2:
            frame[network.OFFSET_AT : network.OFFSET_AT + 2] = draw.randbytes(2)
        else:
            frame[network.OFFSET_AT] = draw.choice((0x20, 0x40, 0x80, 0x01, 0x1F))
            frame[network.OFFSET_AT + 1] = draw.choice((0, 1, 0xFF))

    def _insert_options(self, frame: bytearray) -> None:
        words = self.random.randint(1, 10)
        frame[network.VERSION_IHL_AT] = 0x45 + words
        frame[wire.HEADER_AT : wire.HEADER_AT] = self.random.randbytes(4 * words)

    def _change_ethertype(self, frame: bytearray) -> None:
        ethertype = self.random.choice((0, 0x05DC, 0x0806, 0x86DD, 0x8100, 0x88A8, 0x88CC, 0xFFFF))
        frame[network.ETHERTYPE_AT : network.ETHERTYPE_AT + 2] = ethertype.to_bytes(2, "big")

    def _change_protocol(self, frame: bytearray) -> None:
        if len(frame) > network.PROTOCOL_AT:
            frame[network.PROTOCOL_AT] = self.random.choice((0, 1, 6, 17, 41, 252, 254, 255))

    def _tag_for_a_vlan(self, frame: bytearray) -> None:
        frame[network.ETHERTYPE_AT : network.ETHERTYPE_AT] = b"\x81\0" + self.random.randbytes(2)

    def _lengthen(self, frame: bytearray) -> None:
        frame.extend(bytes(max(0, self._longest - len(frame))))

    def _empty(self, frame: bytearray) -> None:
        frame.clear()


# The most frames of a spell, as each costs as much as a sound one.
_MOST_FRAMES = 300
_VOLLEY = 6
# Between two volleys, log-uniform: from nanoseconds to this share of the time.
_SHORTEST_GAP, _LONGEST_GAP = 5_000, 0.1
# The number of past packets of each kind that are remembered.
_REMEMBERED = 8
# The shares of frames about the plan, changed past frames, and `done`s for later units; the others
# are raw bytes.
_ABOUT_THE_PLAN, _OF_THOSE_THAT_PASSED, _AHEAD = 0.4, 0.4, 0.15
_SESSION_SHIFT = 24
_MAC_BYTES, _WITH_ADDRESSES = 12, 0.5
# The shares of frames about another job, of these those of its workers, and those whose block would
# be the other job's, counted from the beginning of this one's.
_ABOUT_THE_OTHER, _OVERHEARD, _MOVED = 0.5, 0.6, 0.5


@dataclass(frozen=True)
class OtherJob:
    """What a Byzantine worker knows of another job of its switch."""

    generator: Generator  # of frames about its plan
    ports: frozenset[int]
    moves: tuple[int, ...]  # what to add to numbers of blocks


class ByzantineWorker:
    """Sends arbitrary frames over the line of a worker; an onlooker of its switch."""

    def __init__(
        self,
        number: int,
        generator: Generator,
        up: network.Wire,
        port: int,
        *,
        scheduler: Scheduler,
    ) -> None:
        self.began = False  # whether it has sent any yet
        self._name = f"w{number}"
        self._generator = generator
        self._random: Random = generator.random
        self._up = up
        self._port = port
        self._scheduler = scheduler
        self._passed: dict[int, deque[bytes]] = {}
        self._own: deque[bytes] = deque(maxlen=_MOST_FRAMES)
        self._until = 0
        self._left = 0
        self._raves = False
        self._gaps = (0.0, 0.0)
        self.other: OtherJob | None = None  # that its frames are about, too
        self._overheard: deque[bytes] = deque(maxlen=_REMEMBERED * len(wire.Kind))

    def rave(self, seconds: float) -> None:
        """Send arbitrary frames for some seconds, or up to a number."""
        self.began = True
        self._until = max(self._until, self._scheduler.now + int(seconds * SECOND))
        self._left = _MOST_FRAMES
        self._gaps = _SHORTEST_GAP / SECOND, max(_SHORTEST_GAP / SECOND, _LONGEST_GAP * seconds)
        if not self._raves:
            self._raves = True
            self._fire()

    def calm(self) -> None:
        self._until = self._left = 0

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        if port == self._port:
            self._remember(frame for frame in frames if frame not in self._own)
        self._overhear(port, frames)

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        if port == self._port:
            self._remember(frames)
        self._overhear(port, frames)

    def _overhear(self, port: int, frames: list[bytes]) -> None:
        if self.other is not None and port in self.other.ports:
            self._overheard.extend(frame for frame in frames if len(frame) >= wire.BODY_AT)

    def _remember(self, frames: Iterable[bytes]) -> None:
        for frame in frames:
            kind = frame[wire.KIND_AT] & wire.KIND_MASK if len(frame) >= wire.BODY_AT else -1
            self._passed.setdefault(kind, deque(maxlen=_REMEMBERED)).append(frame)

    def ends(self, switch: VirtualSwitch) -> None:
        """Keep past frames."""

    def _fire(self) -> None:
        if self._scheduler.now > self._until or self._left <= 0:
            self._raves = False
            return
        number = self._random.randint(1, min(_VOLLEY, self._left))
        self._left -= number
        self._scheduler.trace.note(self._name, f"is Byzantine, and sends {number} frames")
        frames = [self._frame() for _ in range(number)]
        self._own.extend(frames)
        self._up.send(frames)
        least, most = self._gaps
        gap = int(SECOND * least * (most / least) ** self._random.random())
        self._scheduler.after(gap, self._fire)

    def _frame(self) -> bytes:
        if self.other and self._overheard and self._random.random() < _ABOUT_THE_OTHER:
            return self._frame_of(self.other)
        sort = self._random.random()
        if sort < _ABOUT_THE_PLAN:
            return self._generator.shot().aim(*self._present())
        if sort < _ABOUT_THE_PLAN + _OF_THOSE_THAT_PASSED and self._passed:
            frames = self._passed[self._random.choice(list(self._passed))]
            return self._generator.changed(self._random.choice(frames))
        done = self._passed.get(wire.Kind.DONE)
        if sort < _ABOUT_THE_PLAN + _OF_THOSE_THAT_PASSED + _AHEAD and done:
            return self._generator.ahead(done[-1])
        raw = self._random.randbytes(int(ON_A_WIRE ** self._random.random()))
        with_addresses = self._passed and self._random.random() < _WITH_ADDRESSES
        return next(iter(self._passed.values()))[-1][:_MAC_BYTES] + raw if with_addresses else raw

    def _frame_of(self, other: OtherJob) -> bytes:
        draw, frame = self._random, bytearray(self._random.choice(self._overheard))
        if draw.random() > _OVERHEARD:
            number = network.read_field(frame, "round")
            shot = other.generator.shot()
            frame = bytearray(shot.aim(number >> _SESSION_SHIFT, number & wire.LAST_ROUND))
        if draw.random() < _MOVED and len(frame) >= wire.BODY_AT:
            network.write_header(
                frame, block_id=network.read_field(frame, "block_id") + draw.choice(other.moves)
            )
            network.seal(frame)
        return bytes(frame)

    def _present(self) -> tuple[int, int]:
        """Return session and round of the last barrier that has passed."""
        for kind in (wire.Kind.ADVANCE, wire.Kind.DONE):
            if kind in self._passed:
                number = network.read_field(self._passed[kind][-1], "round")
                return number >> _SESSION_SHIFT, number & wire.LAST_ROUND
        return 1, 1


_KINDS = range(16)
_NOBODY = "02:00:00:00:77:77"
_BROADCAST = "ff:ff:ff:ff:ff:ff"
_PLAN_AT = 4
# The word of the first fragment of 32 numbers.
_BANK_WIDTH = 2
# Types and contents of foreign frames, after the addresses.
_ARP, _IPV6, _LLDP = b"\x08\x06", b"\x86\xdd", b"\x88\xcc"
_VLAN, _LLC, _EXPERIMENT = b"\x81\0\0\x07", b"\0\x04\xaa\xaa\x03x", b"\x88\xb5"
_UDP = 17


def generator_for(
    scenario: Scenario, subject: PlannedSubject, worker: int, random: Random
) -> Generator:
    topology = subject.topology
    spines = [share.plan.switch for share in subject.shares[scenario.leaves or 1 :]]
    facts = facts_of(subject.plan, scenario.width, spines)
    macs = [topology.station(other).mac for other in range(scenario.workers)]
    return generator_between(facts, random, topology.addresses(worker), macs)


def other_job(
    scenario: Scenario, subject: PlannedSubject, blocks: int, own: Addresses, random: Random
) -> OtherJob:
    """Return what a worker with a plan of some blocks, and its addresses, knows of another job."""
    topology, workers = subject.topology, range(scenario.workers)
    macs = [topology.station(worker).mac for worker in workers]
    facts = facts_of(subject.plan, scenario.width)
    return OtherJob(
        generator_between(facts, random, own, macs),
        frozenset(map(topology.port, workers)),
        (blocks, -facts.blocks),
    )


def generator_between(
    facts: Facts,
    random: Random,
    addresses: Addresses,
    macs: Sequence[str],
    kind: type[Generator] = Generator,
    longest: int = ON_A_WIRE,
) -> Generator:
    """Return a generator of frames from `addresses.worker`: for its switch, and for these MACs."""
    templates = {each: _template(each, addresses, facts) for each in _KINDS}
    ordinary = [
        _mac_bytes(mac) + _mac_bytes(addresses.worker.mac) + rest
        for mac in (*macs, addresses.switch.mac, _NOBODY, _BROADCAST)
        for rest in _rests(templates)
    ]
    return kind(facts, random, templates=templates, ordinary=ordinary, longest=longest)


def _template(kind: int, addresses: Addresses, facts: Facts) -> bytes:
    """Return a frame of a kind, sound but for its numbers; unknown kinds are empty."""
    header = wire.Header(kind=kind, fragment=_BANK_WIDTH)
    body = bytearray(wire.body_bytes(header) or 0)
    if kind in wire.BARRIER_KINDS:
        body[_PLAN_AT : _PLAN_AT + 4] = facts.plan_id.to_bytes(4, "big")
    return addresses.frame(header.pack(bytes(body)))


def _rests(templates: dict[int, bytes]) -> list[bytes]:
    packet = templates[wire.Kind.SUM][wire.ETHERNET_BYTES :]
    other = bytearray(packet)
    other[9] = _UDP
    return [
        _ARP + bytes(28),
        _IPV6 + bytes(40),
        _LLDP + bytes(40),
        _EXPERIMENT + packet,
        _VLAN + _ARP + bytes(28),
        _VLAN + b"\x08\0" + packet,
        _LLC,
        b"\x08\0" + bytes(other),
        b"\x08\0" + bytes([0x46]) + packet[1:20] + b"\x01\0\0\0" + packet[20:],
    ]


def _mac_bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))
