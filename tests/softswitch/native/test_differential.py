# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Both back ends give the same packets, counters and registers, for any entries and frames."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

import switchgnn.p4src
from switchgnn.softswitch.native import engine
from switchgnn.softswitch.native.translation.program_source import program_source
from tests.softswitch.harness import PROGRAMS, NativeRig, Rig
from tests.softswitch.native.frames import (
    CORPUS,
    Watch,
    changed,
    entries_for,
    plant,
    put,
    set_up,
    state_of,
)
from tests.support.native import needs_compiler

pytestmark = needs_compiler
P4 = Path(switchgnn.p4src.__file__).parent
ALL = {path.stem: path for path in sorted(PROGRAMS.glob("*.json"))} | {
    "switchgnn": P4 / "compiled" / "switchgnn.json",
    "strawman": P4 / "strawman" / "compiled" / "strawman.json",
}
LINES = {"controller": 0.6}  # minimum shares of reached lines
ROUNDS, FRAMES = 20, 40
AGAIN = 20


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 20))]
)
@pytest.mark.parametrize("name", CORPUS)
def test_both_back_ends_do_the_same(name, seed):
    watch, sent = compare(name, seed)
    assert sent or name == "controller"
    assert watch.share_of_lines >= LINES.get(name, 0.9), watch.share_of_lines
    assert watch.share_of_tables == 1.0


def compare(name, seed):
    """Run a program on both back ends; return the coverage and the number of sent frames."""
    config = ALL[name].read_bytes()
    rng = random.Random(f"{name} {seed}")
    rigs = python, native = Rig(config), NativeRig(config)
    program = python.compiled.program
    set_up(rigs, program, rng)
    watch, deep, sent = Watch(python), [], 0
    for turn in range(ROUNDS):
        if turn:
            put(rigs, list(entries_for(watch, program, rng)))
        for _ in range(FRAMES):
            # Prefer the frames that last reached a new line.
            known = rng.choice([CORPUS[name], deep, deep[-6:]]) or CORPUS[name]
            frame = rng.choice(known)
            if known is not CORPUS[name] or rng.random() < 0.2:
                frame = changed(frame, rng)
            port = rng.randrange(1, 8)
            with watch.frame() as new:
                expected = python.step(port, frame, AGAIN)
            if new:
                deep.append(frame)
            assert native.step(port, frame, AGAIN) == expected, frame.hex()
            sent += len(expected)
    one, other = state_of(python), state_of(native)
    for part, value in one.items():
        assert other[part] == value, part
    return watch, sent


# A mistake in the C++ of each program or in the runtime.
MISTAKES = {
    "controller": ("fate.spec = ", "fate.spec = 1 ^ "),
    "dropping": ("== 0x1ff", "== 0x1fe"),
    "fates": ("fate.cut = ", "fate.cut = 1 + "),
    "headers": (" >> ", " >> 1 + "),
    "loops": ("continue;", "break;"),
    "tables": ("_e->action", "_e->action + 1"),
    "unions": ("std::swap(ok", "std::max(ok"),
    "varbit": ("load_some<1>(data + pos + 2,", "load_some<1>(data + pos + 1,"),
    "wide": ("r.w[i] = a.w[i] ^ b.w[i]", "r.w[i] = a.w[i] | b.w[i]"),
}


@pytest.mark.whole
@pytest.mark.parametrize(
    "name", [n if n == "tables" else pytest.param(n, marks=pytest.mark.full) for n in MISTAKES]
)
def test_a_mistake_is_noticed(name, monkeypatch, tmp_path):
    right, wrong = MISTAKES[name]
    found = [plant(monkeypatch, tmp_path, "wide.h", right, wrong)]

    def mistaken(compiled):
        source = program_source(compiled)
        found.append(right in source.text)
        return replace(source, text=source.text.replace(right, wrong))

    monkeypatch.setattr(engine, "program_source", mistaken)
    with pytest.raises(AssertionError):
        compare(name, 0)
    assert any(found)
