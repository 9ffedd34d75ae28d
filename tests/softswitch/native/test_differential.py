# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Both back ends give the same packets, counters and registers, for any entries and frames."""

import random
import shutil
from pathlib import Path

import pytest

import switchgnn.p4src
from switchgnn.native_compiler import find_compiler
from switchgnn.softswitch.native import build
from tests.softswitch.harness import PROGRAMS, NativeRig, Rig
from tests.softswitch.native.depth import Watch, changed, entries_for
from tests.softswitch.native.frames import Frames, put, set_up, state_of

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C++ compiler")

P4 = Path(switchgnn.p4src.__file__).parent
ALL = {path.stem: path for path in sorted(PROGRAMS.glob("*.json"))} | {
    "switchgnn": P4 / "compiled" / "switchgnn.json",
    "strawman": P4 / "strawman" / "compiled" / "strawman.json",
}
# What random frames reach less of.
LINES: dict[str, float] = {}
TABLES: dict[str, float] = {}
ROUNDS, FRAMES = 4, 80
AGAIN = 20


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 20))]
)
@pytest.mark.parametrize("name", ALL)
def test_both_back_ends_do_the_same(name, seed):
    watch, sent = compare(name, seed)
    assert sent
    # That the frames get into the program: none of its tables is out of reach.
    assert watch.share_of_lines >= LINES.get(name, 0.9), watch.share_of_lines
    assert watch.share_of_tables >= TABLES.get(name, 1.0), watch.share_of_tables


def compare(name, seed):
    """Run a program on both back ends; what its frames reached, and how many were sent."""
    config = ALL[name].read_bytes()
    rng = random.Random(f"{name} {seed}")
    rigs = python, native = Rig(config), NativeRig(config)
    program = python.compiled.program
    set_up(rigs, program, rng)
    watch, frames = Watch(python), Frames(program, rng)
    deep, sent = [], 0
    for turn in range(ROUNDS):
        if turn:
            put(rigs, list(entries_for(watch, program, rng)))
        for _ in range(FRAMES):
            good = deep and rng.random() < 0.6
            frame = changed(rng.choice(deep), rng) if good else frames.frame()
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


@pytest.mark.whole
@pytest.mark.parametrize("wrong", [("r.w[i] = a.w[i] ^ b.w[i]", "r.w[i] = a.w[i] | b.w[i]")])
def test_a_mistake_of_the_runtime_is_noticed(wrong, monkeypatch, tmp_path):
    """That these comparisons can fail."""
    copied = shutil.copytree(build.RUNTIME, tmp_path / "runtime")
    text = (copied / "wide.h").read_text()
    assert wrong[0] in text
    (copied / "wide.h").write_text(text.replace(*wrong))
    monkeypatch.setattr(build, "RUNTIME", copied)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(AssertionError):
        test_both_back_ends_do_the_same("wide", 0)
