"""Both back ends give the same packets, counters and registers, for any entries and frames."""

import copy
import itertools
import json
import random
from pathlib import Path

import pytest

import switchgnn.p4src
from switchgnn.softswitch.base.errors import SoftSwitchError
from switchgnn.softswitch.base.state import Replica
from switchgnn.softswitch.base.tables import Entry, Range, Ternary, prefix_mask
from switchgnn.softswitch.lowering.loader import GivenProgram
from tests.softswitch.harness import PROGRAMS, NativeRig, Rig, action_target, exactly
from tests.softswitch.test_headers import label, magic
from tests.softswitch.test_programs import order, probe
from tests.support.markers import needs_compiler

pytestmark = needs_compiler
P4 = Path(switchgnn.p4src.__file__).parent
ALL = {path.stem: path for path in sorted(PROGRAMS.glob("*.json"))} | {
    "switchgnn": P4 / "compiled" / "switchgnn.json",
    "strawman": P4 / "strawman" / "compiled" / "strawman.json",
}


def number(rng, width):
    """Mostly small numbers, so that keys meet entries."""
    kind = rng.random()
    if kind < 0.55:
        return rng.randrange(10) & ((1 << width) - 1)
    if kind < 0.65:
        return (1 << width) - 1 - rng.randrange(2)
    return rng.getrandbits(width)


CHECKED = bytes.fromhex("12345678 9753")  # two words and their checksum
CORPUS = {
    "controller": [b"hello", bytes(40)],
    "fates": [
        order(first, second, egress, 3)
        for first in range(13)
        for second in (0, 2, 3, 12)
        for egress in range(5)
    ],
    "headers": [
        *(magic(low, 5, tail=tail) + bytes(9) for low in range(8) for tail in (0, 0xBADBAD)),
        *(magic(2) + CHECKED + bytes(6), magic(3)[:5]),
        *(
            magic(1, mid) + b"".join(label(1, last=n == count) for n in range(1, count + 1)) + end
            for mid in (5, 0x35)
            for count in range(1, 5)
            for end in (b"", b"\xff\xff", b"\1")
        ),
    ],
    "loops": [
        bytes([what, 5, 5]) + bytes(8) + bytes([turns]) for what in range(8) for turns in (0, 3)
    ],
    "tables": [
        probe(table, a, b) for table in range(12) for a in (0x1234, 0x77, 5) for b in range(3)
    ],
}


def entries(program, rng, count=6):
    """Random entries (table name, entry) of all tables that are not constant."""
    for name, table in program.tables.items():
        if table.key and not table.entries:
            for _ in range(count):
                key = [number(rng, field.width) for field in table.key]
                yield name, _entry(program, table, rng, key)


def _entry(program, table, rng, key):
    matches = tuple(
        _match(rng, field.match_type, field.width, value)
        for field, value in zip(table.key, key, strict=True)
    )
    prioritised = table.match_type in {"ternary", "range"}
    return Entry(matches, rng.randrange(1, 5) if prioritised else 0, target(program, table, rng))


def target(program, table, rng):
    action = rng.choice(list(table.actions.values()))
    widths = program.actions[action].parameter_widths
    return action_target(table, action, tuple(number(rng, width) for width in widths))


def _match(rng, kind, width, value):
    if kind == "exact":
        return exactly(value)
    if kind == "lpm":
        mask = prefix_mask(rng.randrange(width + 1), width)
        return Ternary(value & mask, mask)
    if kind == "range":
        return Range(*sorted((value, number(rng, width))))
    mask = rng.choice([0, (1 << width) - 1, value, number(rng, width)])
    return Ternary(value & mask, mask)


def _replicas(rng):
    return tuple({Replica(rng.randrange(1, 8), rng.randrange(4)) for _ in range(3)})


def set_up(rigs, program, rng):
    """Give all rigs the same random entries, default actions, groups and sessions."""
    put(rigs, list(entries(program, rng)))
    for name, table in program.tables.items():
        if not table.default_is_const and rng.random() < 0.8:
            action, data, _ = target(program, table, rng)
            for rig in rigs:
                rig.state.tables[name].set_default((action, data, None))
    for ident in range(8):
        group, replicas, longest = _replicas(rng), _replicas(rng), rng.choice([0, 10, 40])
        for rig in rigs:
            rig.state.set_session(ident, replicas, longest)
            if ident:
                rig.state.set_group(ident, group)


def put(rigs, listed):
    for rig in rigs:
        for name, entry in copy.deepcopy(listed):
            rig.state.tables[name].put(entry)


def state_of(rig):
    return {
        "registers": {n: list(r.cells) for n, r in rig.state.registers.items()},
        "counters": {n: (list(c.packets), list(c.bytes)) for n, c in rig.state.counters.items()},
        "direct": {
            (name, entry.key): list(entry.target[2])
            for name, table in rig.state.tables.items()
            for entry in table.snapshot()
            if entry.target[2] is not None
        },
        "counts": rig.counts,
    }


def changed(data, rng):
    """The bytes with a few random changes, insertions and cuts."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 3, 5])):
        if not data:
            break
        at = rng.randrange(len(data))
        size = rng.choice([1, 2, 4, 30])
        kind = rng.randrange(7)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice([0x7F, 0x80, 0xFF, rng.randrange(16), rng.randrange(256)])
        elif kind == 2:
            data[at : at + size] = number(rng, 8 * size).to_bytes(size, "big")
        elif kind == 3:
            data[at:at] = data[at : at + size]
        elif kind == 4:
            data[at:at] = rng.randbytes(size)
        elif kind == 5:
            del data[at : at + size]
        elif rng.random() < 0.5:
            del data[at:]
    return bytes(data)


ROUNDS, FRAMES = 20, 40
AGAIN = 20


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 20))]
)
@pytest.mark.parametrize("name", CORPUS)
def test_both_back_ends_do_the_same(name, seed):
    assert compare(name, seed) or name == "controller"


def narrow(document):
    """Narrow all fields of the switch to four bits, except the one that names the drop port."""
    for kind in document["header_types"]:
        if kind["name"] == "standard_metadata":
            for field in kind["fields"]:
                field[1] = field[1] if field[0] == "egress_spec" else min(4, field[1])


def sign(document):
    signed = 0
    for kind in document["header_types"]:
        for field in kind["fields"]:
            before, field[2:] = field[2:], [True]
            try:
                _ = GivenProgram(json.dumps(document).encode()).lowered
            except SoftSwitchError:
                field[2:] = before
            else:
                signed += 1
    assert signed


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("fates", narrow),
        ("tables", sign),
        *(
            pytest.param(name, change, marks=pytest.mark.full)
            for name, change in itertools.product(CORPUS, (narrow, sign))
        ),
    ],
)
def test_both_back_ends_do_the_same_with_other_fields(name, change):
    assert compare(name, 0, change) or name == "controller"


def compare(name, seed, change=lambda _document: None):
    """Run a program on both back ends; return the number of sent frames."""
    document = json.loads(ALL[name].read_bytes())
    change(document)
    config = json.dumps(document).encode()
    rng = random.Random(f"{name} {seed}")
    rigs = python, native = Rig(config), NativeRig(config)
    program = python.program.program
    set_up(rigs, program, rng)
    sent = 0
    for turn in range(ROUNDS):
        if turn:
            put(rigs, list(entries(program, rng, 2)))
        for _ in range(FRAMES):
            frame = rng.choice(CORPUS[name])
            if rng.random() < 0.5:
                frame = changed(frame, rng)
            port = rng.randrange(1, 8)
            expected = python.step(port, frame, AGAIN)
            assert native.step(port, frame, AGAIN) == expected, frame.hex()
            sent += len(expected)
    one, other = state_of(python), state_of(native)
    for part, value in one.items():
        assert other[part] == value, part
    return sent
