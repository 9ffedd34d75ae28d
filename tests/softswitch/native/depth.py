# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How deep frames get into a program, and frames and entries that get deeper.

The Python of a program is watched while it runs: which of its lines a frame reaches, and with which
keys it looks into tables. Frames that reach a new line are changed further; keys that no entry had
get one.
"""

import sys
from contextlib import contextmanager

from switchgnn.softswitch.tables import Entry, Exact, Prefix, Range, Ternary
from tests.softswitch.native.frames import number, target

_FILE = "<p4 program>"


class Watch:
    """What the frames of a rig in Python have reached."""

    def __init__(self, rig):
        self.lines, self.missed, self.met, self.hit = set(), {}, {}, set()
        self._program = rig.compiled.program
        functions = rig.forwarder._functions
        self.lines_in_all = {
            line
            for function in (functions.ingress, functions.egress)
            for _, _, line in function.__code__.co_lines()
            if line is not None and line != function.__code__.co_firstlineno
        }
        names = functions.ingress.__globals__
        for table in rig.state.tables:
            name = rig.compiled.names.lookup(table)
            if name in names:
                names[name] = self._looking(table, names[name])

    def _looking(self, table, look_up):
        def look(key):
            found = look_up(key)
            asked = self.missed if found is None else self.met
            asked.setdefault(table, {})[key] = None
            if found is not None:
                self.hit.add(table)
            return found

        return look

    @contextmanager
    def frame(self):
        """Whether the frame that runs within reached a line that none had reached."""
        before = len(self.lines)
        new = []

        def trace(frame, event, _argument):
            if frame.f_code.co_filename != _FILE:
                return None
            if event == "line":
                self.lines.add(frame.f_lineno)
            return trace

        usual = sys.gettrace()
        sys.settrace(trace)
        try:
            yield new
        finally:
            sys.settrace(usual)
        if len(self.lines) > before:
            new.append(True)

    @property
    def share_of_lines(self):
        return len(self.lines & self.lines_in_all) / len(self.lines_in_all)

    @property
    def share_of_tables(self):
        """Of the tables that can have an entry, and that frames have asked for."""
        open_tables = {
            name for name, table in self._program.tables.items() if table.key and table.max_size
        }
        return len(self.hit & open_tables) / len(open_tables) if open_tables else 1.0


def entries_for(watch, program, rng, most=8):
    """Entries with keys that were looked up in vain, and others for some that were found."""
    asked = [*watch.missed.items()]
    again = rng.choice(list(watch.met)) if watch.met else None
    if again is not None:
        asked.append((again, watch.met[again]))
    for name, keys in asked:
        table = program.tables[name]
        if table.entries:
            continue
        listed = list(keys)
        for key in rng.sample(listed, min(1 if name == again else most, len(listed))):
            parts = key if isinstance(key, tuple) else (key,)
            matches = tuple(
                _match(rng, field.match_type, int(part))
                if field.match_type != "lpm"
                else _prefix(rng, program, field, int(part))
                for field, part in zip(table.key, parts, strict=True)
            )
            prioritised = table.match_type in {"ternary", "range"}
            priority = rng.randrange(1, 5) if prioritised else 0
            yield name, Entry(matches, priority, target(program, table, rng))
    watch.missed.clear()
    watch.met.clear()


def _match(rng, kind, value):
    if kind == "range":
        return Range(max(0, value - rng.randrange(3)), value)
    if kind == "ternary":
        mask = rng.choice([(1 << value.bit_length()) - 1, value, 0])
        return Ternary(value & mask, mask)
    return Exact(value)


def _prefix(rng, program, field, value):
    header, name = field.target
    width = {f.name: f.width for f in program.headers[header].fields}[name]
    match = Prefix(value, rng.randrange(width + 1), width)
    return Prefix(value & match.mask, match.length, width)


def changed(frame, rng):
    """A frame with a few changes: bits, bytes, small numbers, its end."""
    data = bytearray(frame)
    for _ in range(rng.randrange(1, 4)):
        if not data:
            return bytes(data)
        place = rng.randrange(len(data))
        kind = rng.randrange(6)
        if kind == 0:
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[place] = rng.randrange(16)
        elif kind == 2:
            data[place] = rng.randrange(256)
        elif kind == 3:
            size = rng.choice([1, 2, 4])
            data[place : place + size] = number(rng, 8 * size).to_bytes(size, "big")
        elif kind == 4:
            data += rng.randbytes(rng.choice([1, 2, 8]))
        else:
            del data[rng.randrange(len(data)) :]
    return bytes(data)
