# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Random frames, entries and replicas for any program, and their coverage of its Python."""

import copy
import shutil
import sys
from contextlib import contextmanager

from switchgnn.softswitch.hashing import ALGORITHMS
from switchgnn.softswitch.native import build
from switchgnn.softswitch.program import key_widths
from switchgnn.softswitch.replication import CloneSession, Replica
from switchgnn.softswitch.state import action_target
from switchgnn.softswitch.tables import Entry, Exact, Prefix, Range, Ternary

_DEEPEST = 20


def number(rng, width):
    """Mostly small numbers, so that keys meet entries."""
    kind = rng.random()
    if kind < 0.55:
        return rng.randrange(10) & ((1 << width) - 1)
    if kind < 0.65:
        return (1 << width) - 1 - rng.randrange(2)
    return rng.getrandbits(width)


class Frames:
    """Frames that walk through the parser of a program."""

    def __init__(self, program, rng):
        self._program = program
        self._rng = rng
        self._values = {}
        self._bytes = []

    def frame(self):
        self._values, self._headers, self._stacks, self._lengths = {}, [], {}, {}
        self._ahead = 0, 0, 0
        self._walk()
        self._sum_up()
        data = b"".join(map(self._packed, self._headers)) + self._rng.randbytes(
            self._rng.choice([0, 0, 1, 7, 40])
        )
        if self._rng.random() < 0.05:
            data = data[: self._rng.randrange(len(data) + 1)]
        return data

    def _walk(self):
        state = self._program.parser.initial
        for _ in range(_DEEPEST):
            if state is None:
                return
            definition = self._program.parser.states[state]
            for operation in definition.operations:
                if operation.op.startswith("extract"):
                    self._extract(*operation.parameters)
            case = self._rng.choice(definition.transitions)
            self._choose(definition, case)
            state = case.next_state

    def _extract(self, parameter, length=None):
        name = parameter["value"]
        if parameter["type"] != "regular":
            elements = self._elements(parameter)
            stack = name if isinstance(name, str) else name[0]
            index = self._stacks.get(stack, 0)
            self._stacks[stack] = index + 1
            if index >= len(elements):
                return
            name = elements[index]
        header = self._program.headers[name]
        for field in header.fields:
            self._values[name, field.name] = number(self._rng, field.width)
            if field.varbit:
                self._lengths[name] = self._bytes_of_varbit(field, length)
        self._keep_ahead(name, header.fields[0])
        self._headers.append(name)

    def _keep_ahead(self, name, field):
        value, mask, width = self._ahead
        if width <= field.width and not field.varbit:
            place = field.width - width
            rest = self._values[name, field.name] & ~(mask << place)
            self._values[name, field.name] = rest | (value & mask) << place
        self._ahead = 0, 0, 0

    def _elements(self, parameter):
        program = self._program
        if parameter["type"] == "stack":
            return program.stacks[parameter["value"]].elements
        stack, member = parameter["value"]
        return [program.unions[u].members[member] for u in program.union_stacks[stack].elements]

    def _bytes_of_varbit(self, field, length):
        """A varbit's length, written to the fields of its expression where possible."""
        most = field.width // 8
        chosen = self._rng.randrange(most + 1)
        for key in _fields_in(length):
            if key in self._values:
                self._values[key] = self._rng.choice([8 * chosen, chosen // 4 + 5, chosen])
        return chosen

    def _choose(self, definition, case):
        """Set the fields of the key to match a case."""
        if case.value is None or self._rng.random() < 0.05:
            return
        position = 0
        for node in reversed(definition.key):
            if node["type"] == "field":
                key = tuple(node["value"])
                fields = {f.name: f.width for f in self._program.headers[key[0]].fields}
                width = fields[key[1]]
                if key in self._values:
                    value = case.value >> position & ((1 << width) - 1)
                    mask = (1 << width) - 1 if case.mask is None else case.mask >> position
                    self._values[key] = self._values[key] & ~mask | value & mask
            elif node["type"] in {"stack_field", "union_stack_field"}:
                width = 8
            else:
                width = node["value"][1]
                mask = (1 << width) - 1 if case.mask is None else case.mask >> position
                self._ahead = case.value >> position, mask, width
            position += (width + 7) // 8 * 8

    def _sum_up(self):
        """Compute a checksum, for most frames."""
        valid = set(self._headers)
        best = None
        for checksum in self._program.checksums:
            inputs = self._program.calculations[checksum.calculation].inputs
            headers = {i["value"][0] for i in inputs if i["type"] == "field"}
            found = len(headers & valid) if checksum.target[0] in valid else 0
            if found > (0 if best is None else len(best[1] & valid)):
                best = checksum, headers
        if best is None or self._rng.random() < 0.05:
            return
        calculation = self._program.calculations[best[0].calculation]
        value = width = 0
        for item in calculation.inputs:
            if item["type"] == "payload":
                return
            if item["type"] == "hexstr":
                bits, part = item["bitwidth"], int(item["value"], 16)
            elif item["type"] == "field" and item["value"][0] in valid:
                fields = {f.name: f.width for f in self._program.headers[item["value"][0]].fields}
                bits, part = fields[item["value"][1]], self._values[tuple(item["value"])]
                if item["value"][0] in self._lengths and bits == self._varbit_of(item["value"]):
                    bits = 8 * self._lengths[item["value"][0]]
                    part &= (1 << bits) - 1
            else:
                continue
            value, width = value << bits | part, width + bits
        padding = -width % 8
        data = (value << padding).to_bytes((width + 7) // 8, "big")
        self._values[tuple(best[0].target)] = ALGORITHMS[calculation.algorithm](data)

    def _varbit_of(self, reference):
        header, name = reference
        fields = self._program.headers[header].fields
        return next((f.width for f in fields if f.name == name and f.varbit), None)

    def _packed(self, name):
        header = self._program.headers[name]
        value = total = 0
        for field in header.fields:
            width = 8 * self._lengths[name] if field.varbit else field.width
            value = value << width | self._values[name, field.name] & ((1 << width) - 1)
            total += width
        return value.to_bytes((total + 7) // 8, "big")


def _fields_in(node):
    if isinstance(node, dict):
        if node.get("type") == "field":
            yield tuple(node["value"])
        for part in node.values():
            yield from _fields_in(part)


def entries(program, rng, count=6):
    """Random entries (table name, entry) of all tables that are not constant."""
    for name, table in program.tables.items():
        if table.entries or not table.key:
            continue
        for _ in range(count):
            yield name, _entry(program, table, rng)


def _entry(program, table, rng):
    widths = key_widths(program, table)
    matches = tuple(
        _match(rng, field.match_type, width) for field, width in zip(table.key, widths, strict=True)
    )
    prioritised = table.match_type in {"ternary", "range"}
    return Entry(matches, rng.randrange(1, 5) if prioritised else 0, target(program, table, rng))


def target(program, table, rng):
    action = rng.choice(list(table.actions.values()))
    widths = program.actions[action].parameter_widths
    return action_target(table, action, tuple(number(rng, width) for width in widths))


def _match(rng, kind, width):
    if kind in {"exact", "valid"}:
        return Exact(number(rng, width))
    if kind == "lpm":
        match = Prefix(number(rng, width), rng.randrange(width + 1), width)
        return Prefix(match.value & match.mask, match.length, width)
    if kind == "range":
        return Range(*sorted((number(rng, width), number(rng, width))))
    mask = rng.choice([0, (1 << width) - 1, number(rng, width)])
    return Ternary(number(rng, width) & mask, mask)


def replication(rng):
    groups = {ident: _replicas(rng) for ident in range(1, 6)}
    sessions = {
        ident: CloneSession(_replicas(rng), 0, rng.choice([0, 10, 40])) for ident in range(8)
    }
    return groups, sessions


def _replicas(rng):
    return tuple(
        {Replica(rng.randrange(1, 8), rng.randrange(4)) for _ in range(rng.randrange(1, 4))}
    )


def set_up(rigs, program, rng):
    listed = list(entries(program, rng))
    defaults = [
        (name, target(program, table, rng))
        for name, table in program.tables.items()
        if not table.default_is_const and rng.random() < 0.8
    ]
    groups, sessions = replication(rng)
    put(rigs, listed)
    for rig in rigs:
        for name, (number_, data, _) in defaults:
            rig.state.tables[name].set_default((number_, data, None))
        for ident, replicas in groups.items():
            rig.replication.groups[ident] = replicas
        for ident, session in sessions.items():
            rig.replication.sessions[ident] = session


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


_FILE = "<p4 program>"


class Watch:
    """Coverage by the frames of a rig in Python."""

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
        """Yields a list, not empty afterwards if the frame reached a new line."""
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
        """Share of the open tables in which a frame hit an entry."""
        open_tables = {
            name for name, table in self._program.tables.items() if table.key and table.max_size
        }
        return len(self.hit & open_tables) / len(open_tables) if open_tables else 1.0


def entries_for(watch, program, rng, most=8):
    """Entries for keys that missed, and for a table that hit."""
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
                _match_of(rng, field.match_type, int(part))
                if field.match_type != "lpm"
                else _prefix(rng, program, field, int(part))
                for field, part in zip(table.key, parts, strict=True)
            )
            prioritised = table.match_type in {"ternary", "range"}
            priority = rng.randrange(1, 5) if prioritised else 0
            yield name, Entry(matches, priority, target(program, table, rng))
    watch.missed.clear()
    watch.met.clear()


def _match_of(rng, kind, value):
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
    """A frame with a few random changes."""
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


def plant(monkeypatch, folder, file, right, wrong):
    """Compile programs with a mistake in the runtime; return whether the text is there."""
    copied = shutil.copytree(build.RUNTIME, folder / "mistaken")
    text = (copied / file).read_text()
    (copied / file).write_text(text.replace(right, wrong))
    monkeypatch.setattr(build, "RUNTIME", copied)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return right in text
