# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Rows are packed into frames up to an MTU, and come out of them as they were."""

import hashlib

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from switchgnn.host.direct import (
    Framing,
    FramingError,
    SilentWorkerError,
    binned_schedules,
    copy_schedules,
    partial_schedules,
)
from switchgnn.host.direct.arrivals import Incoming
from switchgnn.host.direct.frames import Envelopes, Outgoing, data_frames, send_order, unpack
from switchgnn.host.direct.framing import LARGEST_MTU, LEAST_MTU, Runs
from switchgnn.host.pace import Pace
from switchgnn.host.wire.header import KIND_AT, Header, Kind
from switchgnn.planner.direction import Direction
from tests.host.direct.crew import (
    BOTH,
    Hub,
    exchange,
    mac_bytes,
    on_hub,
    parts_of,
    random_case,
    stations,
    together,
    wrong,
)
from tests.host.direct.framings import check_frame, features_of, payloads_of, sizes_of_frames
from tests.host.direct.streams import binned_on_hub

mtus = st.one_of(
    st.none(), st.integers(LEAST_MTU, 60), st.integers(LEAST_MTU, 300), st.just(1500), st.just(9000)
)


@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(
    mtu=mtus,
    width=st.integers(1, 70),
    pairs=st.lists(st.integers(0, 9), min_size=1, max_size=5),
    bits=st.integers(1, 12),
    seed=st.integers(0, 99),
)
@example(mtu=50, width=1, pairs=[0, 3], bits=3, seed=0)
@example(mtu=1500, width=363, pairs=[1, 0, 2], bits=2, seed=0)
@example(mtu=None, width=33, pairs=[2, 0, 1], bits=3, seed=0)
def test_the_bytes_of_the_rows_in_order(mtu, width, pairs, bits, seed):
    """Whatever the widths, pairs and MTU, and in whatever bits the rows are handed over."""
    rng = np.random.default_rng(seed)
    worker, workers = len(pairs), len(pairs) + 1
    indptr = np.cumsum([0, *pairs, 0])
    rows = rng.standard_normal((indptr[-1], width), dtype=np.float32)
    counts = rng.integers(1, 2**17, len(rows))
    outgoing = Outgoing(Runs(Framing(mtu), width, indptr))
    envelopes, sent = Envelopes(worker, stations(workers)), {}
    for places in np.array_split(rng.permutation(len(rows)), bits):
        chosen = np.sort(places)
        whole = outgoing.give(chosen, rows[chosen], counts[chosen])
        packed = data_frames(
            send_order(worker, outgoing.runs.first, whole),
            outgoing,
            worker=worker,
            envelopes=envelopes,
            round_number=5,
            mark=77,
            asking=np.zeros(len(whole), dtype=np.bool_),
        )
        for place in range(packed.count):
            frame = bytes(packed.frame(place))
            key = frame[43], int.from_bytes(frame[34:38], "big")
            assert key not in sent
            sent[key] = frame
    for peer, size in enumerate(pairs):
        bodies = payloads_of(rows[indptr[peer] : indptr[peer] + size], mtu)
        assert [60 + len(body) for body in bodies] == sizes_of_frames(size, width, mtu)
        for number, body in enumerate(bodies):
            fields = {"level": 1, "count": len(body) // 4, "fragment": 0}
            if mtu is None:
                row, fragment = divmod(number, -(-width // 32))
                added = min(int(counts[indptr[peer] + row]), 65535)
                fields = {"level": 0, "count": added, "fragment": fragment}
            check_frame(sent.pop((peer, number)), number, worker, peer, body, round=5, **fields)
    assert not sent


@settings(deadline=None, max_examples=120)
@given(
    mtu=mtus,
    width=st.integers(1, 70),
    pairs=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    seed=st.integers(0, 99),
)
def test_a_row_is_here_when_all_its_frames_are(mtu, width, pairs, seed):
    rng = np.random.default_rng(seed)
    rows = [rng.standard_normal((size, width), dtype=np.float32) for size in pairs]
    indptr = np.cumsum([0, *pairs])
    incoming = Incoming(7, Runs(Framing(mtu), width, indptr))
    frames = [
        (peer, number, body)
        for peer, own in enumerate(rows)
        for number, body in enumerate(payloads_of(own, mtu))
    ]
    stride = 4 * (width if mtu is not None else -(-width // 32) * 32)
    missing = {
        (peer, row, byte) for peer, size in enumerate(pairs) for row in range(size)
        for byte in range(0, stride, 4)
    }  # fmt: skip
    payload = 128 if mtu is None else (mtu - 46) // 4 * 4
    for place in rng.permutation(len(frames)):
        assert not incoming.done
        peer, number, body = frames[place]
        assert len(body) == incoming.body_bytes(peer, number)
        incoming.put(peer, number, body)
        for at in range(number * payload, number * payload + len(body), 4):
            missing.discard((peer, at // stride, at % stride))
        lacking = {(peer, row) for peer, row, _ in missing}
        for peer, size in enumerate(pairs):
            for row in range(size):
                here = bool(incoming.arrays.whole[indptr[peer] + row])
                assert here == ((peer, row) not in lacking)
    assert incoming.done
    assert np.array_equal(incoming.rows(np.arange(indptr[-1])), np.concatenate(rows))


@pytest.mark.parametrize("mtu", [50, 190, 1500, LARGEST_MTU])
@pytest.mark.parametrize(
    "faults", ["loss=0.1,duplicate=0.05,reorder=0.05,corrupt=0.01", "duplicate=0.3", "corrupt=0.1"]
)
def test_every_sum_is_right(faults, mtu):
    graph, assignment = random_case(100, 500, 4, mtu, directed=True)
    transports = on_hub(
        partial_schedules(graph, assignment, 4), faults=f"{faults},seed={mtu}", framing=Framing(mtu)
    )
    rng = np.random.default_rng(mtu)
    calls = [
        (rng.standard_normal((100, width), dtype=np.float32), BOTH[turn % 2], False)
        for turn, width in enumerate((7, 40, 1))
    ]
    sums = exchange(transports, parts_of(assignment, 4), calls)
    for (features, way, _), got in zip(calls, sums, strict=True):
        assert wrong(graph, assignment, features, got, way) == 0


# What the frames of `_all_frames` were before rows were packed, with version 3 in their headers.
_AS_EVER = "0f5a133e3c6fc7674dd314895a085cd12fb4e2542b5d549723b8b7d48ab67558"


def test_fragments_are_what_they_were_byte_for_byte():
    assert _all_frames(Framing(None)) == _AS_EVER
    assert _all_frames(Framing(174)) != _AS_EVER


def _all_frames(framing):
    """A digest over all data frames of some exchanges, in the order in which each worker sends."""
    graph, assignment = random_case(200, 900, 4, 3, directed=True)
    digest = hashlib.sha256()
    for width in (31, 32, 100):
        for make in (partial_schedules, binned_schedules):
            hub = Hub(4)
            on = binned_on_hub if make is binned_schedules else on_hub
            transports = on(make(graph, assignment, 4), hub=hub, framing=framing)
            features = np.random.default_rng(width).standard_normal((200, width), dtype=np.float32)
            calls = [(features, way, False) for way in BOTH]
            exchange(transports, parts_of(assignment, 4), calls)
            for sender in stations(4):
                mac = mac_bytes(sender)
                own = [f for f in hub.sent if f[KIND_AT] & 15 == Kind.FEATURE and f[6:12] == mac]
                # A busy machine may ask for some again.
                for frame in dict.fromkeys(own):
                    digest.update(frame)
    return digest.hexdigest()


@pytest.mark.parametrize("mtus", [(1500, 9000), (1500, 1501), (None, 174), (174, None)])
def test_workers_with_other_mtus_do_not_add_up(mtus):
    """Not even where the frames are of the same length: they end with a sentence."""
    graph, assignment = random_case(60, 400, 2, 4, directed=False)
    hub, schedules = Hub(2), copy_schedules(graph, assignment, 2)
    own, features = parts_of(assignment, 2), np.ones((60, 32), dtype=np.float32)
    transports = [
        on_hub(schedules, hub=hub, pace=Pace(patience=0.5), framing=Framing(mtu))[worker]
        for worker, mtu in enumerate(mtus)
    ]

    def work(worker):
        with pytest.raises(SilentWorkerError, match="width of rows, and MTU"):
            transports[worker].aggregate(features[own[worker]], Direction.FORWARD)
        assert not transports[worker].tally.data_received

    together(work, 2)


def test_rows_of_another_width_are_not_taken_for_ours():
    graph, assignment = random_case(60, 400, 2, 4, directed=False)
    transports = on_hub(copy_schedules(graph, assignment, 2), pace=Pace(patience=0.5))
    own = parts_of(assignment, 2)

    def work(worker):
        rows = np.ones((len(own[worker]), 16 * (worker + 1)), dtype=np.float32)
        with pytest.raises(SilentWorkerError, match="width of rows, and MTU"):
            transports[worker].aggregate(rows, Direction.FORWARD)

    together(work, 2)


def test_the_frames_of_an_exchange_are_packed():
    """From the transport to the wire: the rows of a pair, in the order of the schedule."""
    graph, assignment = random_case(60, 300, 3, 11, directed=True)
    schedules, hub = copy_schedules(graph, assignment, 3), Hub(3)
    features = np.random.default_rng(1).standard_normal((60, 5), dtype=np.float32)
    parts = parts_of(assignment, 3)
    framing = Framing(130)
    exchange(
        on_hub(schedules, hub=hub, framing=framing), parts, [(features, Direction.FORWARD, False)]
    )
    for sender, schedule in enumerate(schedules):
        rows = schedule.send.apply(features[parts[sender]])
        for receiver in range(3):
            pair = slice(*schedule.out_indptr[receiver : receiver + 2])
            bodies = [frame[60:] for frame in features_of(hub, sender, receiver)]
            assert bodies == payloads_of(rows[pair], framing.mtu)


def test_a_frame_that_ends_early_or_late_is_dropped():
    body = bytes(100)
    frame = Envelopes(0, stations(2)).data(1, 100) + Header(
        Kind.FEATURE, block_id=1, level=1, count=25
    ).pack(body)
    assert len(unpack(memoryview(frame), 1).body) == 100
    # Bytes behind the packet are Ethernet's.
    assert len(unpack(memoryview(frame + b"behind"), 1).body) == 100
    for other in (frame[:-1], frame[:-4], frame[:60]):
        assert unpack(memoryview(other), 1) is None
    for told in (0, 46, 47, 145, 150, 65535):
        lying = frame[:16] + told.to_bytes(2, "big") + frame[18:]
        assert unpack(memoryview(lying), 1) is None


@pytest.mark.parametrize("text", ["", "1500 ", "-1", "0", "49", "9203", "1e3", "٣٠٠", "9" * 5000])
def test_no_mtu(text):
    with pytest.raises(FramingError, match=r"MTU"):
        Framing.parse(text)


@pytest.mark.parametrize(
    ("text", "payload", "told"),
    [("fragment", 128, "fragment"), ("50", 4, 50), ("1500", 1452, 1500), ("9000", 8952, 9000)],
)
def test_an_mtu(text, payload, told):
    framing = Framing.parse(text)
    assert (framing.payload_bytes, framing.told) == (payload, told)


@pytest.mark.parametrize(
    ("mtu", "window", "frames"),
    [
        (None, 128, 128),
        (1500, 128, 128),
        (9000, 128, 21),
        (9000, 16, 2),
        (9000, 1, 1),
        (50, 16, 16),
    ],
)
def test_a_window_has_no_more_bytes_than_with_the_usual_mtu(mtu, window, frames):
    assert Framing(mtu).paced(Pace(window=window)).window == frames
