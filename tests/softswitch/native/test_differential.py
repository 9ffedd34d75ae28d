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
from tests.softswitch.native.frames import Frames, set_up, state_of

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C++ compiler")

P4 = Path(switchgnn.p4src.__file__).parent
ALL = {path.stem: path for path in sorted(PROGRAMS.glob("*.json"))} | {
    "switchgnn": P4 / "compiled" / "switchgnn.json",
    "strawman": P4 / "strawman" / "compiled" / "strawman.json",
}
FRAMES = 300
AGAIN = 20


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 20))]
)
@pytest.mark.parametrize("name", ALL)
def test_both_back_ends_do_the_same(name, seed):
    config = ALL[name].read_bytes()
    rng = random.Random(f"{name} {seed}")
    rigs = python, native = Rig(config), NativeRig(config)
    program = python.compiled.program
    set_up(rigs, program, rng)
    frames = Frames(program, rng)
    sent = 0
    for _ in range(FRAMES):
        port, frame = rng.randrange(1, 8), frames.frame()
        expected = python.step(port, frame, AGAIN)
        assert native.step(port, frame, AGAIN) == expected, frame.hex()
        sent += len(expected)
    assert sent or python.counts.unattached or python.counts.ingress_drops
    one, other = state_of(python), state_of(native)
    for part, value in one.items():
        assert other[part] == value, part


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
