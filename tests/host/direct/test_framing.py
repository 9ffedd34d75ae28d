"""Rows are packed into frames up to an MTU, and come out of them as they were."""

import struct
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from switchgnn.host.base.compression import NO_COMPRESSION, Compression
from switchgnn.host.base.errors import FramingError, SilentWorkerError
from switchgnn.host.base.pace import Pace
from switchgnn.host.direct import copy_schedules
from switchgnn.host.direct.frames import GROUP, Envelopes, Outgoing, data_frames, send_order, unpack
from switchgnn.host.direct.framing import LEAST_MTU, Framing, Runs
from switchgnn.host.direct.sampling import Sampling
from switchgnn.host.wire.header import Header, Kind
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.sending.phases import shortest_phases
from tests.host.direct import crew


def test_frames_leave_in_phases_one_sender_at_a_receiver():
    frames = np.random.default_rng(3).integers(0, 40, (6, 6))
    np.fill_diagonal(frames, 0)
    phases, slots, sent = shortest_phases(frames), set(), np.zeros_like(frames)
    for worker, row in enumerate(frames):
        indptr = np.append(0, np.cumsum(row))
        order = send_order(worker, indptr, np.arange(indptr[-1]), phases.of_worker(worker))
        assert (np.diff(order.due) > 0).all()
        assert (np.diff(order.run_start) <= GROUP).all()
        for at, peer, number in zip(order.due, order.peer, order.number, strict=True):
            assert number == sent[worker, peer]
            sent[worker, peer] += 1
            assert (at, peer) not in slots
            slots.add((at, peer))
    assert np.array_equal(sent, frames)


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
    envelopes, sent = Envelopes(worker, crew.stations(workers)), {}
    for indices in np.array_split(rng.permutation(len(rows)), bits):
        chosen = np.sort(indices)
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
        for index in range(packed.count):
            frame = bytes(packed.frame(index))
            key = frame[43], int.from_bytes(frame[34:38], "big")
            assert key not in sent
            sent[key] = frame
    for peer, size in enumerate(pairs):
        bodies = payloads_of(rows[indptr[peer] : indptr[peer] + size], mtu)
        assert [60 + len(body) for body in bodies] == crew.sizes_of_frames(size, width, mtu)
        for number, body in enumerate(bodies):
            fields = {"level": 1, "count": len(body) // 4, "fragment": 0}
            if mtu is None:
                row, fragment = divmod(number, -(-width // 32))
                added = min(int(counts[indptr[peer] + row]), 65535)
                fields = {"level": 0, "count": added, "fragment": fragment}
            check_frame(sent.pop((peer, number)), number, worker, peer, body, round=5, **fields)
    assert not sent


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("framing", (Framing(1500), Framing(9000))),
        ("framing", (Framing(1500), Framing(1501))),
        ("framing", (Framing(None), Framing(174))),
        ("sampling", (Sampling(0.5, 0), Sampling(0.5, 1))),
        ("compression", (Compression(cache=True), NO_COMPRESSION)),
        ("compression", (Compression(8), Compression(8, stochastic=True))),
        ("width", (16, 32)),
    ],
    ids=["9000", "1501", "fragment", "sampling", "cache", "rounding", "width"],
)
def test_workers_that_differ_do_not_add_up(name, values):
    """Not even where the frames are of the same length: they end with a sentence."""
    graph, assignment = crew.random_case(60, 400, 2, 4, directed=False)
    hub, pace = crew.Hub(2), Pace(timeout=0.25)
    schedules, own = copy_schedules(graph, assignment, 2), crew.parts_of(assignment, 2)

    def work(worker):
        option, width = {name: values[worker]}, 32
        if name == "width":
            option, width = {}, values[worker]
        transport = crew.on_hub(schedules, hub=hub, pace=pace, **option)[worker]
        rows = np.ones((len(own[worker]), width), dtype=np.float32)
        with pytest.raises(SilentWorkerError, match=r"another schedule arrived: .*, and MTU"):
            transport.aggregate(rows, Direction.FORWARD)
        assert not transport.counters.data_received

    crew.together(work, 2)


def test_a_frame_that_ends_early_or_late_is_dropped():
    frame = Envelopes(0, crew.stations(2)).data(1, 100) + Header(
        kind=Kind.FEATURE, block_id=1, level=1, count=25
    ).pack(bytes(100))
    assert len(unpack(memoryview(frame), 1).body) == 100
    # Bytes behind the packet are Ethernet's.
    assert len(unpack(memoryview(frame + b"behind"), 1).body) == 100
    for other in (frame[:-1], frame[:-4], frame[:60]):
        assert unpack(memoryview(other), 1) is None
    for told in (0, 46, 47, 145, 150, 65535):
        assert unpack(memoryview(frame[:16] + told.to_bytes(2, "big") + frame[18:]), 1) is None


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
        *((mtu, 128, 128) for mtu in (None, 1500)),
        (9000, 128, 21),
        (9000, 16, 2),
        (9000, 1, 1),
        (50, 16, 16),
    ],
)
def test_a_window_has_no_more_bytes_than_with_the_usual_mtu(mtu, window, frames):
    assert Framing(mtu).paced(Pace(window=window)).window == frames


def payloads_of(rows, mtu):
    """The bodies of a pair's frames, in their order: the bytes of its rows, cut."""
    if mtu is None:
        padded = [np.append(row, np.zeros(-len(row) % 32)) for row in rows]
        return [
            struct.pack(">32f", *part) for row in padded for part in np.split(row, len(row) // 32)
        ]
    run = b"".join(struct.pack(f">{len(row)}f", *row) for row in rows)
    payload = (mtu - 46) // 4 * 4
    return [run[at : at + payload] for at in range(0, len(run), payload)]


def check_frame(frame, number, sender, receiver, body, **fields):
    """Read a frame as docs/transports.md draws it, and compare all of it but its mark."""
    assert (frame[12:16], frame[18:22]) == (b"\x08\x00\x45\x02", bytes(4))
    assert frame[16:18] == (46 + len(body)).to_bytes(2, "big")
    assert frame[60:] == body
    said = struct.unpack_from(">IIHHBBHHII", frame, 34)
    names = ("number", "mark", "pair", "count", "kind", "extension", "fragment", "group", "round")
    told = dict(zip(names, said[:-1], strict=True))
    assert (told.pop("extension") - (5 << 4 | fields.pop("level") << 1)) in (0, 1)
    del told["mark"]
    assert told == {
        **{"number": number, "pair": sender << 8 | receiver, "kind": 1, "group": number // 8},
        **fields,
    }
    assert said[-1] == zlib.crc32(frame[34:56] + body)
