"""A worker whose frames go through the native fast path ends like one of which Python takes all."""

from dataclasses import asdict
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchgnn.host.base.pace import Pace
from switchgnn.host.innetwork.barrier import Barrier
from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.receiver import SumReceiver
from switchgnn.host.innetwork.responder import Inbox, Notifier, Responder
from switchgnn.host.innetwork.schedule import block_schedules, empty_schedule
from switchgnn.host.innetwork.sender import FeatureSender
from switchgnn.host.innetwork.units import UnitExchange, _InFlight
from switchgnn.host.wire import header as wire
from switchgnn.host.wire.batches import new_batch
from switchgnn.host.wire.narrow import pack_lanes
from switchgnn.host.wire.native import FastPaths, SumFastPath, native_frames
from switchgnn.planner import build_plan, load_graph
from tests.host.addresses import ADDRESSES, SESSION, Recorder
from tests.support.markers import needs_compiler

pytestmark = needs_compiler
FIRST, SECOND = wire.fragment_words(2 * wire.LANES, wire.LANES)
UNIT = wire.Unit(3, 1, FIRST)
GROUP = 4
# These are not compared. The sums of a batch are taken first, so what says of one of them, in the
# same batch, that it is not complete comes too late to raise doubts.
ASKED = ("recalls", "fetches", "sums_recalled")


@cache
def schedule_of(rows):
    """Frames of all rows together are equally long."""
    options = {"workers": 2, "slots": 64, "program": "ab" * 32, "lanes": wire.LANES // rows}
    plan = build_plan(load_graph("karate"), **options, rows=rows)
    return block_schedules(plan.workers[0], ADDRESSES, GROUP, SESSION, rows)[0]


@pytest.fixture(scope="module")
def schedule():
    return schedule_of(1)


def fast_path_of(schedule):
    counts = np.array(schedule.receive_count, dtype=np.uint32)
    return SumFastPath(schedule.receive_vertex, counts, schedule.rows)


def named_places(places):
    """Return the first bytes of a bundle's body."""
    padding = [wire.NO_PLACE] * (wire.PLACES - len(places))
    return np.array([*places, *padding], dtype=">u2").tobytes()


class Half:
    """One worker in the middle of a block."""

    def __init__(self, schedule, fast_path):
        endpoint = Endpoint(0, SESSION, Recorder(), ADDRESSES, Pace(window=1024))
        responder = Responder(endpoint, np.arange(4))
        inbox = Inbox(endpoint, responder, Notifier(endpoint, SimpleNamespace(directions={}), ()))
        barrier = Barrier(endpoint, workers=2, pools=1, plan_id=1)
        self.units = UnitExchange(endpoint, inbox, barrier=barrier, pools=1)
        self.receiver = SumReceiver(endpoint, schedule, unit=UNIT, began=1.0)
        self.sender = FeatureSender(
            endpoint,
            schedule.frames.fill(
                UNIT[0], UNIT[2], np.zeros((schedule.frames.count, wire.LANES), np.int32)
            ),
        )
        while self.sender.send_some(1.0, self.sender.in_flight):
            pass
        if fast_path is not None:
            fast_path.open(SESSION, UNIT, self.receiver.awaited, self.receiver.payloads)
        self.units._in_flight = [_InFlight(0, UNIT, self.sender, self.receiver, fast_path)]
        self.counters = endpoint.counters

    def take(self, frames):
        batch = new_batch(len(frames) + 1, 256)
        batch.put(b"somebody has taken this one")
        batch.first = 1
        for frame in frames:
            batch.put(frame)
        return self.units._take_batch(batch, 2.0)

    def state(self):
        here = self.receiver.awaited == 0
        return (
            {name: n for name, n in asdict(self.counters).items() if name not in ASKED},
            here.tolist(),
            self.receiver.payloads.reshape(len(here), -1)[here].tobytes(),
            *(self.receiver.done, self.receiver.share, self.receiver.missing_vertices),
            *(self.sender.unconfirmed, self.sender.done),
        )


def header_of(kind, vertex, **fields):
    here = {"session": SESSION, "round": UNIT[0], "block_id": UNIT[1], "fragment": UNIT[2]}
    return wire.Header(kind=kind, dst_id=int(vertex), **{**here, **fields})


def sums(schedule):
    """Frames of which most are right."""
    awaited = len(schedule.receive_vertex)
    flags = st.fixed_dictionaries({}, optional={name: st.just(True) for name in ("ecn", "resend")})

    def frame(index, change, flagged):
        count = schedule.receive_count[index]
        header = header_of(wire.Kind.SUM, schedule.receive_vertex[index], count=count)
        # A sum is the same however often it comes: of two copies either may be taken. Those of
        # every third index are zeros, which alone may come without a body.
        numbers = (np.arange(wire.LANES, dtype=np.int32)[np.newaxis] - index) * (index % 3 > 0)
        bits = change.get("bits", 32)
        if bits == 0 and index % 3:
            change = {"bits": (bits := 8)}
        return header._replace(**change, **flagged), pack_lanes(numbers, bits).tobytes()

    changes = st.sampled_from(
        [
            *({},) * 12,
            {"count": 0},
            {"dst_id": 9999},
            {"round": UNIT[0] + 1},
            {"round": UNIT[0] - 1},
            {"block_id": 2},
            {"fragment": SECOND},
            {"session": SESSION + 1},
            {"is_fetch": True},
            {"kind": wire.Kind.FEATURE},
            *({"bits": bits} for bits in (16, 8, 0)),
        ]
    )
    return st.builds(
        frame, st.integers(0, awaited - 1), changes, st.one_of(st.just({}), st.just({}), flags)
    )


def bundles(schedule):
    """Frames of several rows, of which most are right."""
    rows, width = schedule.rows, wire.LANES // schedule.rows
    right = st.integers(0, len(schedule.receive_vertex) - 1)
    strange = st.integers(0, len(schedule.receive_vertex) + 2)

    def frame(places, change):
        if any(place % 3 for place in places) and change.get("bits") == 0:
            change = {"bits": 8}
        bits = change.get("bits", 32)
        numbers = np.zeros((rows, width), dtype=np.int32)
        for row, place in enumerate(places[:rows]):
            numbers[row] = (np.arange(width) - place) * (place % 3 > 0)
        named = named_places(places)
        header = header_of(wire.Kind.SUM, wire.SUM_BUNDLES, count=len(places))._replace(**change)
        return header, named + pack_lanes(numbers.reshape(1, -1), bits).tobytes()

    changes = [*({},) * 8, {"is_fetch": True}, {"ecn": True}, *({"bits": n} for n in (16, 8, 0))]
    places = st.one_of(
        st.lists(right, min_size=1, max_size=rows, unique=True),
        st.lists(right, min_size=1, max_size=rows, unique=True),
        st.lists(strange, max_size=rows + 1),
    )
    return st.builds(frame, places, st.sampled_from(changes))


def answers(schedule):
    """Acknowledgements, and what says that a sum is not complete."""
    groups = -(-schedule.frames.count // GROUP)

    def frame(kind, group, count, index):
        vertex = schedule.receive_vertex[index]
        return header_of(kind, vertex, feature_group=group, count=count), b""

    return st.builds(
        frame,
        st.sampled_from(
            [wire.Kind.ACK, wire.Kind.ACK, wire.Kind.ACK, wire.Kind.MISSING, wire.Kind.NOTICE]
        ),
        st.integers(0, groups),
        st.sampled_from([GROUP, GROUP, GROUP - 1, 0]),
        st.integers(0, len(schedule.receive_vertex) - 1),
    )


def damaged(frame, damage):
    """Return a frame as it arrives: as it is, with a bit flipped, or cut."""
    how, at = damage
    if how == "flipped":
        changed = bytearray(frame)
        changed[wire.HEADER_AT + at % (len(frame) - wire.HEADER_AT)] ^= 1 << at % 8
        return bytes(changed)
    return frame[: at % len(frame)] if how == "cut" else frame


@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("rows", [1, 4])
@given(data=st.data())
def test_the_fast_path_changes_nothing(rows, data):
    schedule = schedule_of(rows)
    some = bundles(schedule) if rows > 1 else sums(schedule)
    damage = st.tuples(
        st.sampled_from(["not", "not", "not", "not", "flipped", "cut"]), st.integers(0, 4000)
    )
    one = st.tuples(st.one_of(some, some, sums(schedule), answers(schedule)), damage)
    quick, careful = Half(schedule, fast_path_of(schedule)), Half(schedule, None)
    for batch in data.draw(st.lists(st.lists(one, min_size=1, max_size=40), max_size=4)):
        frames = [damaged(ADDRESSES.frame(header.pack(body)), how) for (header, body), how in batch]
        assert quick.take(frames) == careful.take(frames)
        assert quick.state() == careful.state()


def test_what_is_plainly_right_is_taken(schedule):
    """Else the property above would hold of a fast path that lets everything through."""
    fast_path = fast_path_of(schedule)
    half = Half(schedule, fast_path)
    batch = new_batch(len(schedule.receive_vertex) + 1, 256)
    for vertex, count in zip(schedule.receive_vertex, schedule.receive_count, strict=True):
        header = header_of(wire.Kind.SUM, vertex, count=count)
        batch.put(ADDRESSES.frame(header.pack(int(vertex).to_bytes(4, "big") * 32)))
    batch.put(ADDRESSES.frame(header_of(wire.Kind.ACK, 0, count=GROUP).pack(b"")))
    assert FastPaths(native_frames().take_sums).take_plain(batch, [fast_path]) == ()
    assert (fast_path.taken, fast_path.acknowledged) == (batch.count - 1, [(0, GROUP)])
    assert half.receiver.took(fast_path.taken, 2.0)
    assert half.receiver.done
    assert (half.receiver.sums() == schedule.receive_vertex[:, np.newaxis]).all()


def test_a_bundle_that_is_plainly_right_is_taken():
    schedule = schedule_of(4)
    fast_path = fast_path_of(schedule)
    half, awaited = Half(schedule, fast_path), len(schedule.receive_vertex)
    batch = new_batch(awaited, 256)
    for first in range(0, awaited, 4):
        places = [*range(first, min(first + 4, awaited))]
        named = named_places(places)
        rows = np.zeros((4, 8), dtype=">i4")
        rows[: len(places)] = np.array(places)[:, np.newaxis]
        header = header_of(wire.Kind.SUM, wire.SUM_BUNDLES, count=len(places))
        batch.put(ADDRESSES.frame(header.pack(named + rows.tobytes())))
    assert FastPaths(native_frames().take_sums).take_plain(batch, [fast_path]) == ()
    assert fast_path.taken == awaited
    assert (half.receiver.sums() == np.arange(awaited)[:, np.newaxis]).all()


def test_frames_of_any_length_are_no_danger(schedule):
    """The size of a frame is the sender's word."""
    fast_path = fast_path_of(schedule)
    half = Half(schedule, fast_path)
    batch = new_batch(4, wire.BODY_AT)
    batch.put(bytes(wire.BODY_AT))
    batch.put(b"")
    # As a kernel would say of a frame that did not fit.
    batch.sizes[:2] = 9000, 0
    assert FastPaths(native_frames().take_sums).take_plain(batch, [fast_path]) == [0, 1]
    assert not half.receiver.done


def test_an_empty_unit_has_none(schedule):
    """It may have the number of a block: native code would write where it has no room."""
    units = Half(schedule, None).units
    assert units._fast_path(schedule, UNIT) is not None
    assert units._fast_path(empty_schedule(ADDRESSES, SESSION), UNIT) is None
