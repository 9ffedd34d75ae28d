# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What arrives at the switches of an exchange: recorded in one, played into others."""

import copy
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import tests.support.fabrics
from switchgnn.softswitch import Backend, SoftSwitch
from switchgnn.softswitch import loader as given_program
from switchgnn.softswitch.codegen.compiler import compile_program
from switchgnn.softswitch.ports import parse_port
from switchgnn.topologies import loopback_fabric
from tests.softswitch.harness import NativeRig, Rig
from tests.softswitch.native.depth import Watch
from tests.softswitch.native.frames import state_of

# The clocks of both back ends are exact in these parts of a second.
_PARTS = 1 << 20


@dataclass
class Recording:
    """What a switch was given.

    Attributes:
        config: its program.
        frames: (parts of a second since the start, port, frame), in the order of arrival.
        entries, defaults: (table, entry or target).
        groups, sessions: those of replication.
    """

    config: bytes
    frames: list = field(default_factory=list)
    entries: list = field(default_factory=list)
    defaults: list = field(default_factory=list)
    groups: dict = field(default_factory=dict)
    sessions: dict = field(default_factory=dict)


class RecordedSwitch:
    """An embedded switch in this process, where a test expects a child.

    Args:
        ports: as `switch_child` takes them.
        grpc_address: where it serves P4Runtime.
    """

    pid = None

    def __init__(self, ports, grpc_address):
        specs = dict(parse_port(f"{number}={link}") for number, link in ports.items())
        self.switch = SoftSwitch(specs, grpc=grpc_address, backend=Backend.PYTHON)
        self.frames = []
        self._begin = 0.0

    def start(self):
        self.switch.start()
        self._begin = time.monotonic()
        for number, port in self.switch._ports.items():
            port.receive = self._recorded(number, port.receive)

    def _recorded(self, number, receive):
        def received(size):
            frame = receive(size)
            self.frames.append((int((time.monotonic() - self._begin) * _PARTS), number, frame))
            return frame

        return received

    def stop(self):
        self.switch.stop()

    def recording(self, config):
        """What it has been given until now, on top of its program."""

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
    """An entry that has counted nothing yet."""
    number, data, counts = entry.target
    return replace(copy.copy(entry), target=(number, data, None if counts is None else [0, 0]))


@contextmanager
def recorded(monkeypatch):
    """All switches that are started meanwhile, as a list."""
    switches = []

    def make(_target, *, ports, grpc_address, **_):
        switches.append(RecordedSwitch(ports, grpc_address))
        return switches[-1]

    # One after another: `ast.parse` in several threads of one process fails now and then, see
    # https://github.com/python/cpython/issues/106905.
    lock = threading.Lock()

    def compile_alone(program):
        with lock:
            return compile_program(program)

    monkeypatch.setattr(given_program, "compile_program", compile_alone)
    for module in (tests.support.fabrics, loopback_fabric):
        monkeypatch.setattr(module, "switch_child", make)
        monkeypatch.setattr(module, "wait_until_serving", lambda *_: None)
    yield switches


def play(recording, monkeypatch, *, to_native=None):
    """Play it into both back ends; return what leaves and what they hold at the end.

    Args:
        recording: what to play.
        monkeypatch: sets the clock of the Python back end.
        to_native: changes the frames of the native one, to see that it is noticed.

    Returns:
        For Python and native code: the frames that left for each one that came, and the state.
    """
    clock = SimpleNamespace(parts=0)
    times = SimpleNamespace(
        monotonic=lambda: clock.parts / _PARTS,
        monotonic_ns=lambda: clock.parts * 10**9 // _PARTS,
    )
    monkeypatch.setattr("switchgnn.softswitch.forwarding.time", times)
    python, native = Rig(recording.config), NativeRig(recording.config, clock=0.0)
    results = []
    for rig, frames in ((python, recording.frames), (native, _changed(recording, to_native))):
        _prepare(rig, recording)
        left = []
        for parts, port, frame in frames:
            clock.parts = parts
            if rig is native:
                native.engine.switch.call("switch_clock", parts / _PARTS)
            left.append(rig.run(port, frame))
        results.append((left, state_of(rig)))
    return results


def lines_reached(recording):
    """The lines of the program in Python that its frames reach, and all of them."""
    rig = Rig(recording.config)
    _prepare(rig, recording)
    watch = Watch(rig)
    for _, port, frame in recording.frames:
        with watch.frame():
            rig.run(port, frame)
    return watch.lines & watch.lines_in_all, watch.lines_in_all


def _changed(recording, change):
    return recording.frames if change is None else change(list(recording.frames))


def _prepare(rig, recording):
    for name, entry in recording.entries:
        rig.state.tables[name].put(_fresh(entry))
    for name, (number, data, _) in recording.defaults:
        rig.state.tables[name].set_default((number, data, None))
    for ident, replicas in recording.groups.items():
        rig.replication.groups[ident] = replicas
    for ident, session in recording.sessions.items():
        rig.replication.sessions[ident] = session
