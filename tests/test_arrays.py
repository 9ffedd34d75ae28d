"""Data from files: unexpected arrays and records are refused, before they cost memory."""

import gzip
import io
import json
import os
import struct
import tracemalloc
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from switchgnn.base.arrays import (
    ArrayKind,
    ArraysError,
    pack_arrays,
    read_arrays,
    read_npy,
    read_npz,
)
from switchgnn.base.files import PACKED, UnpackLimit
from switchgnn.base.records import RecordError, make_record, parse_json
from tests.planner.helpers import one_sentence, refusal_of

NUMBERS = ArrayKind(("i", "f"), (0, 1, 2))
MEBIBYTE = 1 << 20
# For archives as large as their content.
PLAIN = UnpackLimit(allowance=0, ratio=1)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def npz(method=zipfile.ZIP_STORED, **members):
    """An archive of arbitrary members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return buffer.getvalue()


def header(text, version=(1, 0)):
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text.encode()


def described(descr="'<i8'", shape="(3,)", more="", version=(1, 0)):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, {more}}}\n"
    return header(text, version) + bytes(24)


def refused(data, kinds=None, read=read_npz, **options):
    if read is read_npz:
        options = {"limit": PLAIN} | options
    with pytest.raises(ArraysError) as error:
        read(data, {"a": NUMBERS} if kinds is None else kinds, where="/x", remedy="y", **options)
    message = one_sentence(error)
    assert message.startswith("/x is refused: ")
    assert message.endswith("; y.")
    assert message.isprintable()
    return message


@pytest.mark.parametrize(
    "array",
    [
        np.array(3),
        np.arange(6, dtype=">i2"),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.zeros((0, 5)),
        np.arange(MEBIBYTE, dtype=np.int64),
    ],
)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_come_back(tmp_path, array, save):
    save(tmp_path / "x.npz", a=array)
    np.save(tmp_path / "x.npy", array)
    one = read_npz(tmp_path / "x.npz", {"a": NUMBERS}, remedy="", limit=PACKED)["a"]
    for read in (one, read_npy(tmp_path / "x.npy", NUMBERS, remedy="")):
        assert read.dtype == array.dtype
        assert np.array_equal(read, array)
        assert read.flags.writeable


def tensors(**described):
    """A safetensors file of arbitrary descriptions (dtype, shape, data_offsets), with 24 bytes."""
    names = ("dtype", "shape", "data_offsets")
    text = json.dumps(
        {name: dict(zip(names, each, strict=True)) for name, each in described.items()}
    )
    return struct.pack("<Q", len(text)) + text.encode() + bytes(24)


def test_our_own_files_come_back(tmp_path):
    arrays = {
        "a": np.asfortranarray(np.arange(12, dtype=np.uint16).reshape(3, 4)),
        "b": np.array(7, dtype=np.int64),
        "c": np.zeros((0, 5), dtype=np.float32),
        "d": np.array([True, False]),
    }
    data = pack_arrays(arrays)
    assert data == pack_arrays(dict(reversed(arrays.items())))
    (tmp_path / "x").write_bytes(data)
    kinds = {name: ArrayKind((array.dtype.str,), (array.ndim,)) for name, array in arrays.items()}
    kinds["e"] = ArrayKind(("i",), optional=True)
    for source in (data, tmp_path / "x"):
        read = read_arrays(source, kinds, remedy="")
        assert list(read) == list(arrays)
        for name, array in arrays.items():
            assert read[name].dtype == array.dtype
            assert np.array_equal(read[name], array)


@pytest.mark.parametrize(
    ("data", "part"),
    [
        *((data, "/x is refused") for data in (b"", tensors(a=("I64", [3], [0, 24]))[:-1])),
        (tensors(a=("I64", [3], [8, 32])), "/x is refused"),
        (tensors(a=("BF16", [12], [0, 24])), "/x is refused"),
        (tensors(a=("U8", [24], [0, 24])), "array a: it is |u1[24], not a"),
        (tensors(a=("I64", [1, 1, 3], [0, 24])), "array a: it is <i8[1, 1, 3], not a"),
        (tensors(b=("I64", [3], [0, 24])), "no array a"),
        (tensors(a=("I64", [3], [0, 24]), b=("I8", [0], [24, 24])), "'b', which does not belong"),
        (tensors(**{"\x1b[2J": ("I64", [3], [8, 32])}), r"\x1b[2J"),
        (tensors(a=("I64", [0, 99999999999], [0, 0]))[:-24], "no elements, but the shape"),
    ],
)
def test_other_safetensors_are_refused(data, part):
    assert part in refused(data, read=read_arrays)


def test_optional_and_other_arrays():
    data = npz(a=npy(np.arange(3)), more=b"what is not read may be anything")
    kinds = {"a": NUMBERS, "b": ArrayKind(("i",), optional=True)}
    assert list(read_npz(data, kinds, remedy="", limit=PLAIN, others=".*")) == ["a"]
    assert "'more.npy', which does not belong there" in refused(data, kinds)
    assert "no array b" in refused(data, {"a": NUMBERS, "b": NUMBERS}, others=".*")


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (described(shape="(-1, 3)"), "does not fit"),
        (described(shape="(4,)"), "does not fit 24 bytes"),
        (described(shape="(4611686018427387904,)"), "does not fit 24 bytes"),
        (described(shape="(99999999999, 0)")[:-24], "no elements, but the shape"),
        (described(shape="()"), "does not fit 24 bytes"),
        (described(descr="'O'"), "could run code"),
        (described(descr="[('a', 'O')]"), "could run code"),
        (described(descr="[('a', '<i8')]"), "not a 0-D or 1-D or 2-D array of integers or floats"),
        (described(descr="'<U6'", shape="(1,)"), "not a 0-D or 1-D or 2-D array of"),
        (described(shape="(1, 1, 3)"), "not a 0-D or 1-D or 2-D array of"),
        *((data, "not an array of NumPy") for data in (described(more="(" * 900), header("{"))),
        (described(version=(3, 0)), "unknown version"),
        *((data, "not an array of NumPy") for data in (b"", b"\x80\x04K\x01.")),
    ],
)
def test_unexpected_arrays_are_refused(data, part):
    assert part in refused(npz(a=data))
    assert part in refused(data, NUMBERS, read=read_npy)


def test_booleans_are_0_or_1():
    truth = npy(np.array([True, False]))
    assert read_npy(truth, ArrayKind(("b",)), remedy="").tolist() == [True, False]
    assert "neither 0 nor 1" in refused(truth[:-1] + b"\x02", ArrayKind(("b",)), read=read_npy)


DIRECTORY, LOCAL = b"PK\x01\x02", b"PK\x03\x04"
GOOD = npz(zipfile.ZIP_DEFLATED, a=npy(np.arange(1000)))


def changed(data, at_directory, at_local, fmt, value):
    """The archive with a changed number in its directory and its member's header."""
    made = bytearray(data)
    struct.pack_into(fmt, made, data.index(DIRECTORY) + at_directory, value)
    if at_local is not None:
        struct.pack_into(fmt, made, data.index(LOCAL) + at_local, value)
    return bytes(made)


def test_encrypted_members_and_other_methods_are_refused():
    words = "array a: it is encrypted, or not compressed by deflate"
    assert words in refused(changed(GOOD, 8, 6, "<H", 1), limit=PACKED)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        assert words in refused(npz(method, a=npy(np.zeros(9))), limit=PACKED)


def test_damaged_packing_is_refused():
    start = GOOD.index(b"a.npy") + len(b"a.npy")
    for at in range(start, start + 40, 7):
        data = bytearray(GOOD)
        data[at] ^= 0xFF
        assert "array a: " in refused(bytes(data), limit=PACKED)
    assert "CRC" in refused(changed(GOOD, 16, 14, "<I", 1), limit=PACKED)


@pytest.mark.parametrize("name", ["../a.npy", "/a.npy", "a", "a.npy.npy", "b/a.npy", "a.NPY"])
def test_other_names_are_refused(name):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.npy", npy(np.arange(3)))
        archive.writestr(name, npy(np.arange(3)))
    assert "does not belong there" in refused(buffer.getvalue())


def test_what_is_no_archive_is_refused(tmp_path):
    for data in (b"", b"PK", b"\x80\x04K\x01.", npy(np.arange(3)), GOOD[:-30]):
        assert "not an archive" in refused(data)
    assert "not an array of NumPy" in refused(GOOD, NUMBERS, read=read_npy)


def test_a_file_that_cannot_be_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "pipe", tmp_path / "folder", tmp_path / "none"):
        for read, kinds in (
            (partial(read_npz, limit=PACKED), {"a": NUMBERS}),
            (read_arrays, {"a": NUMBERS}),
            (read_npy, NUMBERS),
        ):
            said = refusal_of(ArraysError, read, path, kinds, remedy="y")
            assert f"Cannot read {path}" in said


def peak(call):
    """The peak of allocated bytes during a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_small_archive_does_not_unpack_to_much():
    data = npz(zipfile.ZIP_DEFLATED, a=npy(np.zeros(64 * MEBIBYTE, dtype=np.int8)))
    assert len(data) < MEBIBYTE
    assert peak(lambda: refused(data, limit=UnpackLimit(0, 50))) < MEBIBYTE
    assert "would unpack to 67,108," in refused(data, limit=UnpackLimit(0, 50))


def test_a_member_or_a_header_that_promises_more_than_the_directory_costs_nothing():
    start = described("'|i1'", "(1000,)")
    member = npz(zipfile.ZIP_DEFLATED, a=start + bytes(64 * MEBIBYTE))
    member = changed(member, 24, 22, "<I", len(start) - 24 + 1000)
    for data in (member, npz(zipfile.ZIP_DEFLATED, a=described(shape="(4000000000,)"))):
        assert peak(partial(refused, data, limit=PACKED)) < 8 * MEBIBYTE


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_words_and_classes_may_be_packed(tmp_path, share):
    """Tables of zeros and ones compress best of all real data."""
    features = (np.random.default_rng(0).random((500, 2000)) < share).astype(np.float32)
    arrays = {"a": features, "b": np.eye(1500, dtype=np.float32)}
    np.savez_compressed(tmp_path / "x.npz", **arrays)
    kinds = {"a": NUMBERS, "b": NUMBERS}
    read = read_npz(tmp_path / "x.npz", kinds, remedy="", limit=PACKED)
    assert all(np.array_equal(read[name], array) for name, array in arrays.items())
    with pytest.raises(ArraysError, match="would unpack to"):
        read_npz(tmp_path / "x.npz", kinds, remedy="", limit=UnpackLimit(0, 2))


@dataclass(frozen=True)
class Part:
    size: int


@dataclass(frozen=True)
class Whole:
    name: str
    parts: tuple[Part, ...]
    by_name: Mapping[str, Part]
    rates: tuple[float | None, ...] = (None,)
    where: Mapping[str, str | int] | None = None
    exact: bool = False


RIGHT = {"name": "n", "parts": [{"size": 1}], "by_name": {"a": {"size": 2}}}


def test_what_is_right_is_a_frozen_record():
    made = make_record(Whole, RIGHT | {"rates": [1, None, 0.5], "where": {"a": 1, "b": "c"}})
    assert made == Whole("n", (Part(1),), {"a": Part(2)}, (1.0, None, 0.5), {"a": 1, "b": "c"})
    assert make_record(Part, {"size": 10**30}) == Part(10**30)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": 1}, "name: expected str, got int"),
        ({"exact": 1}, "exact: expected bool, got int"),
        ({"parts": [{"size": 1}, {"size": True}]}, "parts[1].size: expected int, got bool"),
        ({"parts": [{"size": 1, "hue": 2}]}, "parts[0]: unknown field hue; known: size"),
        ({"by_name": {"a": {"size": 1, "hue": 2}}}, "by_name.a: unknown field hue; known: size"),
        ({"by_name": {"a": {"size": "1"}}}, "by_name[...].size: expected int, got str"),
        ({"hue": 1}, "unknown field hue; known: by_name, exact, name, parts, rates, where"),
    ],
)
def test_what_is_wrong_is_named(changes, said):
    with pytest.raises(RecordError) as error:
        make_record(Whole, RIGHT | changes)
    assert str(error.value) == said


@pytest.mark.parametrize("data", [b"", b"\xff", b'{"a": "\xff"}', b"NaN", b"[" * 10**5])
def test_what_is_not_json(data):
    with pytest.raises(RecordError, match="it is not JSON") as error:
        parse_json(data)
    assert "\n" not in str(error.value)


def test_gzip_gives_no_second_allowance(tmp_path):
    """An archive of zeros, packed twice, may unpack to no more than one packed once."""
    zeros = npz(zipfile.ZIP_DEFLATED, a=npy(np.zeros(1 << 20)))
    (tmp_path / "x.npz").write_bytes(gzip.compress(zeros))
    (tmp_path / "x.npy").write_bytes(gzip.compress(npy(np.zeros(9))))
    limit = UnpackLimit(allowance=len(zeros), ratio=50)
    with pytest.raises(ArraysError, match="would unpack to 8,388,"):
        read_npz(tmp_path / "x.npz", {"a": NUMBERS}, remedy="", limit=limit)
    read = read_npz(tmp_path / "x.npz", {"a": NUMBERS}, remedy="", limit=PACKED)
    assert len(read["a"]) == 1 << 20
    assert len(read_npy(tmp_path / "x.npy", NUMBERS, remedy="")) == 9
