# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Both back ends do the same in the middle of faulty exchanges, frame by frame.

Also where frames are changed or forged, which entries of a plan let further into the program than
random ones (`test_differential.py`) do.
"""

import random
import shutil
from contextlib import ExitStack
from dataclasses import replace

import pytest

from switchgnn.lab.virtual.network import FIELDS, seal
from switchgnn.softswitch.native import build
from switchgnn.topologies import Target
from tests.softswitch.native.depth import changed
from tests.softswitch.native.frames import number
from tests.softswitch.native.recording import lines_reached, play, recorded
from tests.support.fabrics import Team, bed
from tests.support.leaf_spine_fabrics import leaf_spine_bed
from tests.support.native import needs_compiler

pytestmark = [
    pytest.mark.whole,
    needs_compiler,
]

FAULTS = "loss=0.05,duplicate=0.05,reorder=0.1,corrupt=0.02,seed=7"
ROUNDS = 2
# Of slots that forged frames meet: each number of lanes has its own part of the program.
LANES = {"star": (32, 64, 128, 256), "leaf-spine": (32, 64, 128, 256), "strawman": (8, 16, 32)}


def exchange(made, stack, lanes):
    """Exchange rows of two fragments, a full one and a narrow one."""
    team = Team(made, stack, faults=FAULTS)
    assert team.run(ROUNDS, width=lanes + 1) == 0, team.errors
    assert all(team.injected()[kind] for kind in ("lost", "duplicated", "reordered", "corrupted"))


def star(strawman, folder, monkeypatch, lanes=32):
    """What arrived at the switch of a star."""
    with ExitStack() as stack:
        switches = stack.enter_context(recorded(monkeypatch))
        made = stack.enter_context(bed(Target.EMBEDDED, 3, folder, strawman=strawman, lanes=lanes))
        made.install()
        exchange(made, stack, lanes)
        return [switches[0].recording(made.program.json)]


def leaf_spine(folder, monkeypatch, lanes=32):
    """What arrived at two leaves and at a spine."""
    with ExitStack() as stack:
        switches = stack.enter_context(recorded(monkeypatch))
        made = stack.enter_context(leaf_spine_bed(folder, lanes=lanes))
        made.disturb(f"cables.{FAULTS.replace(',', ',cables.').replace('cables.seed', 'seed')}")
        exchange(made, stack, lanes)
        return [each.recording(made.program.json) for each in switches]


def differences(recording, monkeypatch, **options):
    """Where the back ends differ: numbers of frames, and parts of the state."""
    (left, state), (other_left, other_state) = play(recording, monkeypatch, **options)
    frames = [n for n, pair in enumerate(zip(left, other_left, strict=False)) if pair[0] != pair[1]]
    assert sum(map(len, left)) > 100
    return frames, [part for part in state if state[part] != other_state[part]]


@pytest.mark.parametrize("strawman", [False, True], ids=["switchgnn", "strawman"])
def test_a_faulty_exchange_on_a_star(strawman, tmp_path, monkeypatch):
    (recording,) = star(strawman, tmp_path, monkeypatch)
    assert differences(recording, monkeypatch) == ([], [])
    # That it can fail: one frame less for native code.
    frames, parts = differences(
        recording, monkeypatch, to_native=lambda all_: all_[:50] + all_[51:]
    )
    assert frames
    assert "counts" in parts


def test_a_faulty_exchange_on_leaves_and_a_spine(tmp_path, monkeypatch):
    recordings = leaf_spine(tmp_path, monkeypatch)
    assert len(recordings) == 3
    for recording in recordings:
        assert differences(recording, monkeypatch) == ([], [])


def forged(frames, rng):
    """Frames of an exchange, and behind each two forged ones, most with a right checksum."""
    ports = sorted({port for _, port, _ in frames})
    for parts, port, frame in frames:
        yield parts, port, frame
        for _ in range(2):
            made = bytearray(changed(frame, rng) if rng.random() < 0.3 else frame)
            for name in rng.sample(sorted(FIELDS), rng.randrange(3)):
                at, size = FIELDS[name]
                if at + size <= len(made):
                    made[at : at + size] = number(rng, 8 * size).to_bytes(size, "big")
            if rng.random() < 0.9:
                seal(made)
            yield parts, rng.choice(ports) if rng.random() < 0.3 else port, bytes(made)


# Of the lines of a program, how many the frames reach at least. What a switch never does is among
# the rest: a leaf's steps on a star, a spine's on a leaf, wide slots of the strawman.
LINES = {"star": 0.7, "leaf-spine": 0.7, "strawman": 0.65}


def forged_recordings(kind, lanes, folder, monkeypatch):
    recordings = (
        leaf_spine(folder, monkeypatch, lanes)
        if kind == "leaf-spine"
        else star(kind == "strawman", folder, monkeypatch, lanes)
    )
    names = ("leaf", "leaf", "spine") if kind == "leaf-spine" else (kind,)
    rng = random.Random(kind)
    for name, each in zip(names, recordings, strict=True):
        yield name, replace(each, frames=list(forged(each.frames, rng)))


@pytest.mark.parametrize("kind", ["star", "strawman", "leaf-spine"])
def test_forged_frames_meet_the_entries_of_a_plan(kind, tmp_path, monkeypatch):
    reached, in_all = {}, {}
    for lanes in LANES[kind]:
        (folder := tmp_path / str(lanes)).mkdir()
        for name, recording in forged_recordings(kind, lanes, folder, monkeypatch):
            assert differences(recording, monkeypatch) == ([], []), (name, lanes)
            lines, in_all[name] = lines_reached(recording)
            reached.setdefault(name, set()).update(lines)
    shares = {name: len(lines) / len(in_all[name]) for name, lines in reached.items()}
    assert min(shares.values()) >= LINES[kind], shares


@pytest.mark.full
@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        ("wide.h", "r.w[i] = a.w[i] ^ b.w[i]", "r.w[i] = a.w[i] | b.w[i]"),
        ("engine.h", "Program::keep(fate.again, after, values);", "values = {};"),
    ],
)
def test_a_mistake_of_the_runtime_is_noticed(file, right, wrong, tmp_path, monkeypatch):
    (recording,) = star(False, tmp_path, monkeypatch)
    copied = shutil.copytree(build.RUNTIME, tmp_path / "runtime")
    text = (copied / file).read_text()
    assert right in text
    (copied / file).write_text(text.replace(right, wrong))
    monkeypatch.setattr(build, "RUNTIME", copied)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert differences(recording, monkeypatch) != ([], [])
