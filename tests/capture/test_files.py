"""Capture files of all forms are read; damaged or hostile ones up to the damage."""

import gzip
import io
import os
import struct
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.capture.files import CaptureFiles, CaptureStream, read_frames
from switchgnn.capture.packet import LONGEST_FRAME, CaptureError, DamageError
from tests.capture.drawn import feature, flipped
from tests.capture.written import block, enhanced, interface, option, pcap, pcapng, section
from tests.support.markers import whole
from tests.support.speed import seconds_here

TIME = 1_700_000_000_123_456_000
FRAMES = [(TIME, b"a" * 60), (TIME + 1000, b"b" * 61), (TIME + 5 * 10**9, b"")]


def read(content):
    """All frames of a file, and the damage if there is one."""
    source, found = CaptureStream(io.BytesIO(content), "it"), []
    try:
        found.extend(read_frames(source, "l"))
    except DamageError as error:
        return found, str(error)
    return found, None


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("unit", [1, 1000])
def test_pcap(order, unit):
    found, damage = read(pcap(FRAMES, order, unit))
    assert damage is None
    assert [(each.time, each.frame) for each in found] == FRAMES


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("resolution", [6, 9, 0x80 | 20])
def test_pcapng(order, resolution):
    found, damage = read(pcapng(FRAMES, order, resolution, b"eth7"))
    assert damage is None
    assert [each.frame for each in found] == [frame for _, frame in FRAMES]
    exact = 0 if resolution < 0x80 else 1000
    for each, (time, _) in zip(found, FRAMES, strict=True):
        assert 0 <= time - each.time <= exact
    assert {each.link for each in found} == {"eth7"}


def test_the_length_that_a_frame_had():
    found, _ = read(pcap([(TIME, b"a" * 40, 188)]))
    assert [(len(each.frame), each.size) for each in found] == [(40, 188)]


def test_pcapng_with_several_sections_and_what_is_passed_over():
    content = (
        section("<") + interface("<", b"one") + block("<", 0xBAD, bytes(100_000))
        + enhanced("<", 0, 5, b"x" * 20)
        + section(">") + interface(">", b"radio", link_type=127) + interface(">", b"two")
        + enhanced(">", 0, 6, b"y" * 20) + enhanced(">", 1, 7, b"z" * 20)
    )  # fmt: skip
    found, damage = read(content)
    assert damage is None
    # Frames of other link types are counted, but not decoded.
    assert [(each.link, each.frame) for each in found] == [
        ("one", b"x" * 20), ("radio", b""), ("two", b"z" * 20)
    ]  # fmt: skip


def test_each_interface_of_a_section_has_an_offset_of_its_own():
    content = b""
    for order, offsets in (("<", (10**9, -7)), (">", (2, 1 << 33))):
        values = [*(struct.pack(f"{order}q", seconds) for seconds in offsets), b"1234"]
        interfaces = [interface(order, more=option(order, 14, value)) for value in values]
        packets = [enhanced(order, number, 5, b"x") for number in range(3)]
        content += section(order) + b"".join(interfaces + packets)
    found, damage = read(content)
    assert damage is None
    assert [(each.time - 5) // 10**9 for each in found] == [10**9, -7, 0, 2, 1 << 33, 0]


@given(st.data())
def test_a_file_that_was_cut_off_is_read_up_to_there(data):
    made = data.draw(st.sampled_from((pcap, pcapng)))
    content = made(FRAMES)
    kept = data.draw(st.integers(4, len(content)))
    found, damage = read(content[:kept])
    whole, _ = read(content)
    assert found == whole[: len(found)]
    if damage is None:
        records = [made(FRAMES[:count]) for count in range(len(FRAMES) + 1)]
        assert content[:kept] in (*records, section())
    else:
        assert "damaged at byte" in damage


@given(st.data())
def test_whatever_is_changed_ends_with_a_sentence(data):
    content = bytearray(data.draw(st.sampled_from((pcap(FRAMES), pcapng(FRAMES, name=b"n")))))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        found, _ = read(bytes(content))
    except CaptureError as error:
        assert "link type" in str(error)
        return
    assert all(len(each.frame) <= len(content) for each in found)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (pcap([]) + struct.pack("<IIII", 1, 1, LONGEST_FRAME + 1, 1), "more than 262,144"),
        (pcap([]) + struct.pack("<IIII", 1, 1, 0xFFFFFFFF, 1), "more than 262,144"),
        (section() + struct.pack("<II", 6, 0xFFFFFFF0) + bytes(99), "more than"),
        (section() + struct.pack("<II", 99, 0xFFFFFFF0) + bytes(99), "in the middle of a block"),
        (section() + struct.pack("<II", 6, 13) + bytes(99), "shorter than its header"),
        (section() + struct.pack("<II", 6, 8) + bytes(99), "shorter than its header"),
        (section()[:-4] + struct.pack("<I", 5), "length fields do not match"),
        (section() + enhanced("<", 0, 1, b"abc"), "that is not there"),
        (section() + interface() + block("<", 6, bytes(8)), "shorter than its header"),
        (section() + block("<", 1, bytes(4)), "shorter than its header"),
        (section()[:8] + b"none" + section()[12:], "without a byte order"),
        (section() + interface()[:-1], "in the middle"),
        (
            section()
            + interface()
            + block("<", 6, struct.pack("<5I", 0, 0, 0, 500, 500) + b"abcd"),
            "that is not there",
        ),
    ],
    ids=range(13),
)
def test_hostile_files(content, words):
    _, damage = read(content)
    assert words in damage


def test_options_without_sense():
    too_long = struct.pack("<HxxI", 1, 0) + struct.pack("<HH", 2, 60000) + b"ab"
    found, damage = read(section() + block("<", 1, too_long) + enhanced("<", 0, 1, b"abcd"))
    assert damage is None
    assert found[0].frame == b"abcd"
    content = section() + interface("<", resolution=0x7F) + enhanced("<", 0, 1 << 62, b"abcd")
    assert read(content)[0][0].time < 1 << 62


def test_several_files_are_merged_by_time(tmp_path):
    for name, frames in (("w0", FRAMES[::2]), ("w1", FRAMES[1:2]), ("w2", [])):
        (tmp_path / f"{name}.pcap").write_bytes(pcap(frames))
    (tmp_path / "notes.txt").write_text("not a capture")
    with CaptureFiles([str(tmp_path)]) as opened:
        found = list(opened)
    assert [(each.time, each.frame) for each in found] == FRAMES
    assert [each.link for each in found] == ["w0", "w1", "w0"]
    assert opened.damages == []


def test_where_one_file_is_damaged_the_others_are_read(tmp_path):
    (tmp_path / "w0.pcap").write_bytes(pcap(FRAMES)[:-20])
    (tmp_path / "w1.pcap").write_bytes(pcap([(TIME + 9 * 10**9, b"last")]))
    with CaptureFiles([str(tmp_path)]) as opened:
        found = list(opened)
    assert [each.frame for each in found] == [FRAMES[0][1], b"last"]
    [damage] = opened.damages
    assert "w0.pcap is damaged at byte" in str(damage)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it has 0 bytes"),
        (b"abc", "it has 3 bytes"),
        (b"neither this nor that", "neither a pcap nor a pcapng"),
        (pcap(FRAMES, link_type=127), "link type 127"),
    ],
    ids=["empty", "short", "text", "radio"],
)
def test_what_is_no_capture(tmp_path, content, words):
    path = tmp_path / "some.pcap"
    path.write_bytes(content)
    with pytest.raises(CaptureError, match=words), CaptureFiles([str(path)]) as opened:
        list(opened)


def test_gzipped_files_of_a_folder(tmp_path):
    (tmp_path / "w0.pcap.gz").write_bytes(gzip.compress(pcap(FRAMES[:1])))
    two = pcap(FRAMES[1:])
    (tmp_path / "w1.pcapng.gz").write_bytes(gzip.compress(two[:50]) + gzip.compress(two[50:]))
    (tmp_path / "notes.txt.gz").write_bytes(gzip.compress(b"not a capture"))
    with CaptureFiles([str(tmp_path)]) as opened:
        assert [(each.link, each.time, each.frame) for each in opened] == [
            (link, *frame) for link, frame in zip(("w0", "w1", "w1"), FRAMES, strict=True)
        ]


@pytest.mark.parametrize("position", range(-12, 0))
@pytest.mark.parametrize("damaged", [lambda content, at: content[:at], flipped], ids=["cut", "bit"])
def test_a_damaged_gzip_file_is_read_up_to_there(tmp_path, position, damaged):
    content = gzip.compress(pcap(FRAMES))
    (tmp_path / "w0.pcap.gz").write_bytes(damaged(content, position))
    with CaptureFiles([str(tmp_path / "w0.pcap.gz")]) as opened:
        found = [(each.time, each.frame) for each in opened]
    assert found == FRAMES[: len(found)]
    assert len(found) >= len(FRAMES) - 1
    [damage] = opened.damages
    assert "w0.pcap.gz is damaged at byte" in str(damage)


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_a_pipe(tmp_path, packed):
    os.mkfifo(tmp_path / "pipe")
    writing = threading.Thread(
        target=(tmp_path / "pipe").write_bytes, args=[packed(pcap(FRAMES))], daemon=True
    )
    writing.start()
    with CaptureFiles([str(tmp_path / "pipe")]) as opened:
        assert [each.frame for each in opened] == [frame for _, frame in FRAMES]
    writing.join(seconds_here(10))


def test_what_cannot_be_opened(tmp_path):
    (tmp_path / "empty").mkdir()
    for name, words in (
        ("/dev/zero", "not a regular file"),
        ("none", "No such file"),
        ("empty", "no .pcap"),
    ):
        with pytest.raises(CaptureError, match=words):
            CaptureFiles([str(tmp_path / name)])
    with pytest.raises(CaptureError, match="once"):
        CaptureFiles(["-", "-"])


MEMORY = """
import sys
from switchgnn.capture.files import CaptureFiles
from switchgnn.capture.packet import decode, usual_names
from switchgnn.capture.summary import Summary

names, summary = usual_names(), Summary(remembered=1000)
with CaptureFiles(["-"]) as opened:
    for captured in opened:
        packet = decode(captured, names)
        if packet is not None:
            for chapter in summary.note(packet):
                chapter.lines(0)
from pathlib import Path
[line] = [line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line]
print(line.split()[1])
"""


@whole
@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_memory_does_not_grow_with_a_file(packed):
    """Ten times as many packets of different sources and blocks take hardly more."""
    used = []
    for count in (1_000, 10_000):
        frames = [
            (
                TIME + position,
                feature(position % 4, src_id=position, block_id=position // 9 & 0xFFFF),
            )
            for position in range(count)
        ]
        result = subprocess.run(
            [sys.executable, "-c", MEMORY],
            input=packed(pcap(frames)), capture_output=True, check=True,
        )  # fmt: skip
        used.append(int(result.stdout))
    assert used[1] < used[0] + 2048, "KiB"
