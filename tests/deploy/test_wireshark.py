"""Wireshark's dissector says of every packet what our decoder says; needs tshark."""

import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from switchgnn.capture.lines import description, workers_of
from switchgnn.host.direct.frames import PROTOCOL as DIRECT_PROTOCOL
from switchgnn.host.wire.addresses import ipv4_envelope
from switchgnn.host.wire.header import (
    BITS,
    BODY_AT,
    PROTOCOL,
    BarrierBody,
    Header,
    Kind,
    lanes_of,
    payload_bytes,
    places_bytes,
)
from switchgnn.host.wire.narrow import pack_lanes, unpack_lanes
from tests.capture.drawn import SWITCH, WORKERS, direct_packets, feature, flipped, frame_of, packets
from tests.capture.test_packet import decoded
from tests.capture.written import pcap
from tests.support.markers import needs, whole
from tests.support.speed import seconds_here

pytestmark = [whole, needs("tshark", "tshark")]
SCRIPT = Path(__file__).parent.parent.parent / "deploy/wireshark/switchgnn.lua"
HEADER = [name for name in (*Header._fields, "checksum") if name != "fragment"]
PARTS = ["fragment", "pool", "width", "lanes"]
BODY = ["magnitude", "plan", "seen_round", "worker", "heartbeat", "lane", "place"]
REDUCE = [f"reduce.{name}" for name in ("number", "code", "newest")]
DIRECT = [f"direct.{name}" for name in ("number", "tag", "from", "to", "round", "fragment", "lane")]
WORDS = ["summary", "problem", "refusal", "direct"]
NARROW = (Kind.FEATURE, Kind.SUM)
WITH_LANES = (Kind.FEATURE, Kind.SUM, Kind.REDUCE, Kind.REDUCED)
OF_REDUCE = (Kind.REDUCE, Kind.REDUCED, Kind.REDUCING)
NOT_OURS = {name: [] for name in HEADER + PARTS + BODY + REDUCE + DIRECT + WORDS}
# One run of tshark for many packets: each example is a capture.
few = settings(
    max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)


def dissected(frames, folder, script=SCRIPT):
    """What tshark says of each frame: the values of each of our fields."""
    path = folder / "drawn.pcap"
    path.write_bytes(pcap([(10**9, *each) for each in frames]))
    names = list(NOT_OURS)
    columns = [word for name in names for word in ("-e", f"switchgnn.{name}")]
    form = ["-T", "fields", "-E", "separator=;", "-E", "aggregator=|", "-E", "occurrence=a"]
    result = subprocess.run(
        ["tshark", "-n", "-r", path, "-X", f"lua_script:{script}", *form, *columns],
        capture_output=True, text=True, check=True, timeout=seconds_here(60),
    )  # fmt: skip
    assert "Lua" not in result.stderr, result.stderr
    rows = [line.split(";") for line in result.stdout.splitlines()]
    assert len(rows) == len(frames)
    return [
        {name: cell.split("|") if cell else [] for name, cell in zip(names, row, strict=True)}
        for row in rows
    ]


def narrow_lanes(header, frame):
    if header.bits == 0:
        return []
    lanes = lanes_of(header.fragment)
    size, begin = payload_bytes(header.fragment, header.bits), BODY_AT + places_bytes(header)
    body = np.frombuffer(frame[begin : begin + size], dtype=np.uint8)[np.newaxis]
    return unpack_lanes(body, lanes, header.bits)[0].tolist()


def number(text):
    known = {"true": 1, "false": 0}
    return known[text.lower()] if text.lower() in known else int(text, 0)


def assert_same(said, packet):
    told = {name: number(*said[name]) for name in HEADER}
    told["bits"] = BITS[told["bits"]]
    header, checksum = packet.parsed
    fields = header._asdict() | {"checksum": checksum}
    assert told == {name: int(fields[name]) for name in HEADER}
    assert said["summary"] == [description(packet)]
    assert said["problem"] == ([packet.problem] if packet.problem else [])
    assert number(*said["direct"]) == packet.direct
    frame = packet.captured.frame
    begin = BODY_AT if packet.direct else BODY_AT + places_bytes(header)
    there = (len(frame) - begin) // 4
    if not packet.cut and packet.problem is None:
        places = struct.unpack_from(f">{(begin - BODY_AT) // 2}H", frame, BODY_AT)
        assert list(map(int, said["place"])) == list(places)
    if packet.body is not None:
        assert number(*said["plan"]) == packet.body.plan
        if header.kind == Kind.REDUCING:
            lower, upper = packet.body.round, packet.body.magnitude % 256
            assert number(*said["reduce.newest"]) == upper * 2**32 + lower
        else:
            assert number(*said["seen_round"]) == packet.body.round
            (bits,) = struct.unpack(">f", packet.body.magnitude.to_bytes(4, "big"))
            assert float(said["magnitude"][0]) == pytest.approx(bits, rel=1e-5, nan_ok=True)
        assert list(map(int, said["worker"])) == workers_of(packet.body.workers)
        assert list(map(int, said["heartbeat"])) == workers_of(packet.body.heartbeats or 0)
    if not packet.direct:
        parts = [number(*said[name]) for name in PARTS]
        word = header.fragment
        assert parts == [word >> 7, word >> 5 & 3, word & 31, lanes_of(word)]
    count = there if packet.direct else lanes_of(header.fragment)
    if header.kind in NARROW and header.bits < 32 and not packet.direct:
        if packet.problem is None and not packet.cut:
            assert list(map(int, said["lane"])) == narrow_lanes(header, frame)
    elif header.kind in WITH_LANES and there >= count:
        form, name = (f">{count}f", "direct.lane") if packet.direct else (f">{count}i", "lane")
        lanes = struct.unpack_from(form, frame, begin)
        assert list(map(float, said[name])) == pytest.approx(lanes, rel=1e-5, nan_ok=True)
    if header.kind in OF_REDUCE and not packet.direct:
        assert number(*said["reduce.number"]) == header.round * 2**16 + header.block_id
        assert number(*said["reduce.code"]) == header.feature_group
    if header.kind == Kind.WAITING and not packet.direct:
        assert number(*said["refusal"]) == header.count
    if packet.direct:
        pair = header.block_id
        assert [number(*said[name]) for name in DIRECT[:6]] == [
            header.src_id, header.dst_id, pair >> 8, pair & 0xFF,
            header.session << 24 | header.round, header.fragment,
        ]  # fmt: skip


@few
@given(data=st.data())
def test_every_field_of_every_kind(data, tmp_path):
    drawn = [data.draw(packets((kind,))) for kind in Kind for _ in range(6)]
    drawn += data.draw(st.lists(direct_packets(), min_size=30, max_size=30))
    frames = [frame for _, frame in drawn]
    for said, frame in zip(dissected([(each,) for each in frames], tmp_path), frames, strict=True):
        assert_same(said, decoded(frame))


@few
@given(data=st.data())
def test_what_is_not_sound(data, tmp_path):
    """A bit that is turned over is found; where it makes another length of it, nobody claims it."""
    either = st.one_of(packets(), direct_packets())
    drawn = data.draw(st.lists(either, min_size=60, max_size=60))
    frames = [flipped(frame, data.draw(st.integers(0, 2**16))) for _, frame in drawn]
    claimed = 0
    for said, frame in zip(dissected([(each,) for each in frames], tmp_path), frames, strict=True):
        if said == NOT_OURS:
            # Then it was version or kind that has changed.
            packet = decoded(frame)
            assert packet.problem is not None
            assert packet.problem.startswith(
                ("version", "kind", "short", "no rows", "checksum", *"1830")
            )
            continue
        claimed += 1
        assert_same(said, decoded(frame))
        assert said["problem"]
    assert claimed > 30


@few
@given(data=st.data())
def test_a_capture_with_a_short_snap_length(data, tmp_path):
    drawn = data.draw(st.lists(packets(), min_size=30, max_size=30))
    cut = [(frame[: data.draw(st.integers(BODY_AT, len(frame)))], len(frame)) for _, frame in drawn]
    for said, each in zip(dissected(cut, tmp_path), cut, strict=True):
        assert_same(said, decoded(*each))


def resealed(frame, offset, value):
    """A frame with another byte, and the checksum that is right then."""
    changed = bytearray(frame)
    changed[offset] = value
    head, body = bytes(changed[34:56]), bytes(changed[60:])
    changed[56:60] = zlib.crc32(body, zlib.crc32(head)).to_bytes(4, "big")
    return bytes(changed)


def test_another_version_is_claimed_by_its_checksum(tmp_path):
    frames = [resealed(feature(src_id=7), 47, 0x30), resealed(feature(src_id=7), 46, 0x0F)]
    for said, frame in zip(dissected([(each,) for each in frames], tmp_path), frames, strict=True):
        assert_same(said, decoded(frame))
        assert said["problem"][0].startswith(("version 3", "kind 15"))


@few
@given(bodies=st.lists(st.binary(max_size=200), min_size=40, max_size=40))
def test_other_experiments_are_left_alone(bodies, tmp_path):
    frames = [(ipv4_envelope(WORKERS[0], SWITCH, len(body)) + body,) for body in bodies]
    assert dissected(frames, tmp_path) == [NOT_OURS] * len(frames)
    assert frames[0][0][23] == PROTOCOL


def test_the_columns(tmp_path):
    body = BarrierBody(0x3F800000, 0xAB, 7, 0b101, 0b10)
    frame = frame_of(Header(kind=Kind.WAITING, count=3, round=7), body.pack(), SWITCH, WORKERS[0])
    path = tmp_path / "one.pcap"
    path.write_bytes(pcap([(10**9, frame)]))
    result = subprocess.run(
        ["tshark", "-n", "-r", path, "-X", f"lua_script:{SCRIPT}"],
        capture_output=True, text=True, check=True, timeout=seconds_here(60),
    )  # fmt: skip
    assert "SwitchGNN" in result.stdout
    assert result.stdout.rstrip().endswith(description(decoded(frame)))
    assert description(decoded(frame)).endswith("refused: tag")


MISTAKES = [
    ("GROUP_LANES * (1 +", "GROUP_LANES * (2 +"),
    ("range:uint() - math.floor(2 ^ (bits - 1))", "range:uint()"),
    ("GROUP_BYTES * math.floor(group / parts)", "GROUP_BYTES * group"),
    ("buffer(38, WORKER_BYTES)", "buffer(39, WORKER_BYTES)"),
    ("tree:add(f.plan, buffer(30, 4))", "tree:add(f.plan, buffer(26, 4))"),
    ("begin + 4 * lane, 4", "begin + 124 - 4 * lane, 4"),
    ("value = 0xffffffff", "value = 0xfffffffe"),
    ("innermost(ip_len) - innermost(ip_hdr_len)", "128"),
    ("0, bytes / 4 - 1 do", "0, bytes / 4 - 2 do"),
    ("WORKER_BYTES - math.floor(worker / 8)", "1 + math.floor(worker / 8)"),
    ("buffer(8, 2):uint(), 16)", "buffer(8, 2):uint(), 8)"),
    ("buffer(29, 1):uint(), buffer(34, 4)", "buffer(26, 1):uint(), buffer(34, 4)"),
    ("tree:add(f.reduce_code, buffer(16, 2))", "tree:add(f.reduce_code, buffer(14, 2))"),
    ("[REDUCED] = true }", "}"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong"), MISTAKES, ids=[wrong for _, wrong in MISTAKES])
def test_a_mistake_is_noticed(right, wrong, tmp_path):
    """The comparison above is tried with a field in another one's position, and the like."""
    text = SCRIPT.read_text()
    assert text.count(right) == 1
    script = tmp_path / "wrong.lua"
    script.write_text(text.replace(right, wrong))
    header = Header(
        5, 6, 7, 3, True, False, True, False, Kind.WAITING, 5, 8, 1, True, 1055, 9, 200, 0x123456
    )  # fmt: skip
    body = BarrierBody(0x3F800000, 0xABCDEF, 7, 0b101 | 1 << 100, 0b10)
    newest = body._replace(magnitude=0xEF)
    a_sum = Header(kind=Kind.SUM, src_id=1, dst_id=2, block_id=3, count=4, fragment=3)
    frames = [
        frame_of(header, body.pack(), SWITCH, WORKERS[0]),
        frame_of(a_sum, bytes(range(128)), SWITCH, WORKERS[1]),
        frame_of(
            a_sum._replace(fragment=7, bits=16),
            pack_lanes(np.arange(-32, 32, dtype=np.int32)[np.newaxis], 16).tobytes(),
            *(SWITCH, WORKERS[1]),
        ),
        frame_of(header._replace(kind=Kind.REDUCING), newest.pack(), SWITCH, WORKERS[0]),
        frame_of(
            Header(kind=Kind.REDUCED, block_id=7, fragment=3), bytes(range(128)), *WORKERS[:2]
        ),
        frame_of(
            a_sum._replace(kind=Kind.FEATURE, fragment=0, level=1),
            struct.pack(">5f", *range(5)),
            *WORKERS[:2],
            protocol=DIRECT_PROTOCOL,
        ),
    ]
    said = dissected([(each,) for each in frames], tmp_path, script)
    with pytest.raises((AssertionError, TypeError)):
        for each, frame in zip(said, frames, strict=True):
            assert_same(each, decoded(frame))
