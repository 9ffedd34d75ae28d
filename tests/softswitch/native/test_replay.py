# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Both back ends behave alike when recorded faulty exchanges are replayed."""

import copy
import random
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

import tests.support.fabrics
from switchgnn.host.compression import NO_COMPRESSION, Compression
from switchgnn.host.wire.header import KIND_AT, KIND_MASK
from switchgnn.softswitch import Backend, SoftSwitch
from switchgnn.softswitch.ports import parse_port
from switchgnn.topologies import Target, fabric, loopback_fabric
from tests.simulation.network import EXTENSION_AT, FIELDS, LANE_KINDS, body_end, seal
from tests.softswitch.harness import NativeRig, Rig
from tests.softswitch.native.test_differential import changed, number, state_of
from tests.support.fabrics import Team, bed
from tests.support.leaf_spine_fabrics import leaf_spine_bed
from tests.support.native import needs_compiler
from tests.support.reducing import Crew, check

# Both clocks are exact in these parts of a second.
_PARTS = 1 << 20


@dataclass
class Recording:
    """Frames (time in parts, port, frame) and state given to a switch."""

    config: bytes
    frames: list = field(default_factory=list)
    entries: list = field(default_factory=list)
    defaults: list = field(default_factory=list)
    groups: dict = field(default_factory=dict)
    sessions: dict = field(default_factory=dict)


class RecordedSwitch:
    """An embedded switch in this process, in place of a child."""

    pid = None

    def __init__(self, ports, grpc_address):
        specs = dict(parse_port(f"{number}={link}") for number, link in ports.items())
        self.switch = SoftSwitch(specs, grpc=grpc_address, backend=Backend.PYTHON)
        self.frames = []
        self._begin = 0.0

    def start(self):
        self.switch.start()
        self._begin = time.monotonic()
        for place, port in self.switch._ports.items():
            port.receive = self._recorded(place, port.receive)

    def _recorded(self, number, receive):
        def received(size):
            frame = receive(size)
            self.frames.append((int((time.monotonic() - self._begin) * _PARTS), number, frame))
            return frame

        return received

    def stop(self):
        self.switch.stop()

    def recording(self, config):

        def look():
            state, replication = self.switch.state, self.switch.replication
            made = Recording(config, list(self.frames))
            for name, table in state.tables.items():
                entries = [entry for entry in table.snapshot() if not entry.constant]
                made.entries += [(name, _fresh(entry)) for entry in entries]
                made.defaults.append((name, table.default[0]))
            made.groups, made.sessions = dict(replication.groups), dict(replication.sessions)
            return made

        return self.switch.call(look)


def _fresh(entry):
    number, data, counts = entry.target
    return replace(copy.copy(entry), target=(number, data, None if counts is None else [0, 0]))


@contextmanager
def recorded(monkeypatch):
    """Yields the list of switches started inside."""
    switches = []

    def make(_target, *, ports, grpc_address, **_):
        switches.append(RecordedSwitch(ports, grpc_address))
        return switches[-1]

    for module in (tests.support.fabrics, fabric):
        monkeypatch.setattr(module, "switch_child", make)
    for module in (tests.support.fabrics, loopback_fabric):
        monkeypatch.setattr(module, "wait_until_serving", lambda *_: None)
    yield switches


def play(recording, monkeypatch):
    """Play a recording on both back ends; return sent frames per frame, and the final state."""
    clock = SimpleNamespace(parts=0)
    times = SimpleNamespace(
        monotonic=lambda: clock.parts / _PARTS,
        monotonic_ns=lambda: clock.parts * 10**9 // _PARTS,
    )
    monkeypatch.setattr("switchgnn.softswitch.forwarding.time", times)
    python, native = Rig(recording.config), NativeRig(recording.config, clock=0.0)
    results = []
    for rig in (python, native):
        _prepare(rig, recording)
        left = []
        for parts, port, frame in recording.frames:
            clock.parts = parts
            if rig is native:
                native.engine.switch.call("switch_clock", parts / _PARTS)
            left.append(rig.run(port, frame))
        results.append((left, state_of(rig)))
    return results


def _prepare(rig, recording):
    for name, entry in recording.entries:
        rig.state.tables[name].put(_fresh(entry))
    for name, (action, data, _) in recording.defaults:
        rig.state.tables[name].set_default((action, data, None))
    for ident, replicas in recording.groups.items():
        rig.replication.groups[ident] = replicas
    for ident, session in recording.sessions.items():
        rig.replication.sessions[ident] = session


pytestmark = [pytest.mark.whole, needs_compiler]
LANES = 32
FAULTS = "loss=0.05,duplicate=0.05,reorder=0.1,corrupt=0.02,seed=7"
# Numbers of 32 bits, of 16, and rows of 8 bits that are the same again.
COMPRESSIONS = (NO_COMPRESSION, Compression(bits=16), Compression(bits=8, cache=True))


def exchange(made, stack, *, reduces):
    """Reduce tensors of several widths, and exchange rows of two fragments, in fewer bits, too.

    The second fragment has few lanes.
    """
    if reduces:
        with ExitStack() as own:
            check(Crew(made, own, faults=FAULTS).begun().submit(1, (8, 300, 700)))
    team = Team(made, stack, faults=FAULTS)
    for compression in COMPRESSIONS if reduces else (NO_COMPRESSION,) * 2:
        for each in team.exchanges:
            each.compress(compression)
        # Rows that are cached are the same in each round.
        for _ in range(1 + compression.cache):
            assert team.run(1, width=LANES + 1) == 0, team.errors
    assert all(team.injected()[kind] for kind in ("lost", "duplicated", "reordered", "corrupted"))


def star(strawman, folder, monkeypatch):
    with ExitStack() as stack:
        switches = stack.enter_context(recorded(monkeypatch))
        made = stack.enter_context(bed(Target.EMBEDDED, 3, folder, strawman=strawman))
        made.install()
        exchange(made, stack, reduces=not strawman)
        return [switches[0].recording(made.program.json)]


def leaf_spine(folder, monkeypatch):
    with ExitStack() as stack:
        switches = stack.enter_context(recorded(monkeypatch))
        made = stack.enter_context(leaf_spine_bed(folder))
        made.disturb(f"cables.{FAULTS.replace(',', ',cables.').replace('cables.seed', 'seed')}")
        exchange(made, stack, reduces=True)
        return [each.recording(made.program.json) for each in switches]


def differences(recording, monkeypatch):
    """Numbers of frames and parts of the state in which the back ends differ."""
    (left, state), (other_left, other_state) = play(recording, monkeypatch)
    frames = [n for n, pair in enumerate(zip(left, other_left, strict=True)) if pair[0] != pair[1]]
    assert sum(map(len, left)) > 100
    return frames, [part for part in state if state[part] != other_state[part]]


def narrowed(frame, bits):
    """A frame with another code of the bits of its numbers, and as many bytes as they take."""
    made = bytearray(frame)
    made[EXTENSION_AT] |= bits << 2
    if made[KIND_AT] & KIND_MASK in LANE_KINDS:
        del made[body_end(made) :]
    seal(made)
    return bytes(made)


def forged(frames, rng):
    """Frames of an exchange, each followed by two forged ones, most with a right checksum.

    Some come after one that has a narrow body, or none, so that the switch widens it.
    """
    ports = sorted({port for _, port, _ in frames})
    for parts, port, frame in frames:
        if len(frame) > EXTENSION_AT and rng.random() < 0.5:
            yield parts, port, narrowed(frame, rng.randrange(1, 4))
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


def forged_recordings(kind, folder, monkeypatch):
    recordings = (
        leaf_spine(folder, monkeypatch)
        if kind == "leaf-spine"
        else star(kind == "strawman", folder, monkeypatch)
    )
    names = ("leaf", "leaf", "spine") if kind == "leaf-spine" else (kind,)
    rng = random.Random(kind)
    for name, each in zip(names, recordings, strict=True):
        yield name, replace(each, frames=list(forged(each.frames, rng)))


@pytest.mark.parametrize("kind", ["star", "leaf-spine", "strawman"])
def test_both_back_ends_do_the_same_in_an_exchange(kind, tmp_path, monkeypatch):
    """With losses, copies and corrupted frames, and with forged frames between."""
    for name, recording in forged_recordings(kind, tmp_path, monkeypatch):
        assert differences(recording, monkeypatch) == ([], []), name
