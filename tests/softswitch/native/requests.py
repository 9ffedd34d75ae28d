# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Random Write requests for any program: right ones, wrong ones, odd ones, and broken bytes."""

from finsy.proto import p4i, p4r

KEYS = 6  # so few that entries meet again
_EXACT = p4i.MatchField.EXACT


class Requests:
    """Requests for the tables of a P4Info, most of them for those whose keys are exact."""

    def __init__(self, p4info, rng):
        self._rng = rng
        self._actions = {action.preamble.id: action for action in p4info.actions}
        tables = [table for table in p4info.tables if table.match_fields]
        exact = [t for t in tables if all(f.match_type == _EXACT for f in t.match_fields)]
        self._tables = tables + 4 * exact

    def chance(self, probability):
        return self._rng.random() < probability

    def request(self, wrong, count=None):
        """A message of some updates; each thing in it is wrong or odd as likely as told."""
        count = self._rng.choice([1, 2, 8, 40]) if count is None else count
        return p4r.WriteRequest(
            device_id=1,
            election_id=p4r.Uint128(low=1),
            updates=[self.update(wrong) for _ in range(count)],
        )

    def update(self, wrong):
        kind = self._rng.choice([1, 1, 1, 2, 3])
        if self.chance(wrong):
            kind = self._rng.choice([0, 7, -1])
        update = p4r.Update(type=kind)
        if self.chance(wrong):
            update.entity.counter_entry.counter_id = 1
            return update
        entry = update.entity.table_entry
        table = self._rng.choice(self._tables)
        entry.table_id = table.preamble.id if not self.chance(wrong) else 0x02FFFFFF
        for field in table.match_fields:
            if not self.chance(wrong):
                self._match(entry, field, wrong)
        if any(
            field.match_type not in {_EXACT, p4i.MatchField.LPM} for field in table.match_fields
        ):
            entry.priority = self._rng.randrange(1, 3)
        if kind != p4r.Update.DELETE or self.chance(0.3):
            self._action(entry, table, wrong)
        self._spoil(entry, wrong)
        return update

    def _match(self, entry, field, wrong):
        match = entry.match.add(field_id=field.id)
        value = self._value(field.bitwidth, wrong)
        if field.match_type == _EXACT:
            match.exact.value = value
        elif field.match_type == p4i.MatchField.LPM:
            match.lpm.value, match.lpm.prefix_len = value, field.bitwidth
        elif field.match_type == p4i.MatchField.TERNARY:
            match.ternary.value = value
            match.ternary.mask = ((1 << field.bitwidth) - 1).to_bytes(8, "big")
        elif field.match_type == p4i.MatchField.RANGE:
            match.range.low = match.range.high = value
        else:
            match.optional.value = value
        if self.chance(wrong):
            match.field_id = self._rng.choice([0, 1, 2, 200])

    def _action(self, entry, table, wrong):
        ref = self._rng.choice(table.action_refs)
        if ref.scope == p4i.ActionRef.DEFAULT_ONLY and not self.chance(wrong):
            ref = table.action_refs[0]
        action = entry.action.action
        action.action_id = ref.id if not self.chance(wrong) else self._rng.choice([0, 1 << 31])
        parameters = list(self._actions[ref.id].params)
        if self.chance(0.1):
            self._rng.shuffle(parameters)
        for parameter in parameters:
            if not self.chance(wrong):
                value = self._value(parameter.bitwidth, wrong, False)
                action.params.add(param_id=parameter.id, value=value)
        if self.chance(wrong):
            action.params.add(param_id=self._rng.choice([0, 1, 99]), value=b"\1")

    def _value(self, width, wrong, small=True):
        """Shortest, of full width, or longer with zeros; or too wide, or nothing."""
        most = (1 << width) - 1
        value = self._rng.randrange(KEYS) & most if small else self._rng.getrandbits(width)
        if self.chance(0.1):
            value = most - self._rng.randrange(2)
        shortest = value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")
        if self.chance(wrong):
            return self._rng.choice([b"", (most + 1).to_bytes(width // 8 + 1, "big"), b"\xff" * 99])
        if self.chance(0.3):
            return shortest.rjust((width + 7) // 8, b"\0")
        return b"\0" * 70 + shortest if self.chance(0.02) else shortest

    def _spoil(self, entry, wrong):
        """Sets fields that a plain entry does not have."""
        if self.chance(wrong):
            entry.priority = self._rng.choice([1, -1])
        if self.chance(wrong):
            entry.metadata = b"note"
        if self.chance(wrong):
            entry.counter_data.packet_count = 5
        if self.chance(wrong):
            entry.is_default_action = True
        if self.chance(wrong):
            entry.idle_timeout_ns = 1
        if self.chance(wrong):
            entry.is_const = True
        if self.chance(wrong) and entry.match:
            entry.match.append(entry.match[0])

    def broken(self, data):
        """The same bytes with some changed, moved, doubled or cut off."""
        data = bytearray(data)
        for _ in range(self._rng.choice([1, 1, 2, 5])):
            if not data:
                break
            at = self._rng.randrange(len(data))
            end = min(len(data), at + self._rng.choice([1, 2, 4, 30]))
            how = self._rng.randrange(6)
            if how == 0:
                data[at] ^= 1 << self._rng.randrange(8)
            elif how == 1:
                data[at] = self._rng.choice([0, 1, 0x7F, 0x80, 0xFF, self._rng.randrange(256)])
            elif how == 2:
                del data[at:end]
            elif how == 3:
                data[at:at] = data[at:end]
            elif how == 4:
                data[at:at] = self._rng.randbytes(end - at)
            elif self.chance(0.2):
                del data[at:]
        return bytes(data)
