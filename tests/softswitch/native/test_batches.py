"""Write and Read requests have the same answers on both back ends."""

import random
import struct
import subprocess
from pathlib import Path

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from switchgnn.base.native import SHARED, find_compiler
from switchgnn.softswitch import Backend, SoftSwitch
from switchgnn.softswitch.base.errors import RequestError
from switchgnn.softswitch.base.schema import build_schema
from switchgnn.softswitch.lowering.loader import load_program
from switchgnn.softswitch.lowering.program import lower_program
from switchgnn.softswitch.native import build
from switchgnn.softswitch.native.build import table_shapes
from switchgnn.softswitch.native.source import program_source
from switchgnn.softswitch.native.state import format_numbers
from switchgnn.softswitch.p4runtime.entities import apply_updates, read_entities, read_request
from switchgnn.softswitch.p4runtime.pipeline_config import PipelineConfigs
from tests.softswitch.harness import PROGRAMS
from tests.softswitch.native.test_differential import ALL, P4, changed, plant
from tests.support.markers import needs_compiler

KEYS = 6  # so few that entries meet again
_EXACT = p4i.MatchField.EXACT


class Requests:
    def __init__(self, p4info, rng):
        self._rng = rng
        self._actions = {action.preamble.id: action for action in p4info.actions}
        tables = [table for table in p4info.tables if table.match_fields]
        self._exact = [t for t in tables if all(f.match_type == _EXACT for f in t.match_fields)]
        self._all = tables + 4 * self._exact

    def chance(self, probability):
        return self._rng.random() < probability

    def request(self, wrong, count=None):
        """A request in which each field is wrong or unusual with a probability."""
        count = self._rng.choice([1, 2, 8, 40]) if count is None else count
        # One unusual update leaves the whole request to Python.
        self._usual = self.chance(0.6)
        wrong = 0 if self._usual else wrong
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
        table = self._rng.choice(self._exact if self._usual else self._all)
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
        if not self._usual and self.chance(0.1):
            self._rng.shuffle(parameters)
        for parameter in parameters:
            if not self.chance(wrong):
                value = self._value(parameter.bitwidth, wrong, False)
                action.params.add(param_id=parameter.id, value=value)
        if self.chance(wrong):
            action.params.add(param_id=self._rng.choice([0, 1, 99]), value=b"\1")

    def _value(self, width, wrong, small=True):
        """Shortest, full width or zero-padded; if wrong, too wide or empty."""
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
        if self.chance(wrong):
            entry.priority = self._rng.choice([1, -1])
        for name, value in (
            *(("metadata", b"note"), ("counter_data", p4r.CounterData(packet_count=5))),
            *(("is_default_action", True), ("idle_timeout_ns", 1), ("is_const", True)),
        ):
            if self.chance(wrong):
                entry.MergeFrom(p4r.TableEntry(**{name: value}))
        if self.chance(wrong) and entry.match:
            entry.match.append(entry.match[0])


pytestmark = needs_compiler
INFOS = {
    "switchgnn": P4 / "compiled" / "switchgnn.p4info.txtpb",
    "strawman": P4 / "strawman" / "compiled" / "strawman.p4info.txtpb",
}
UNDECODED = "undecoded"
REQUESTS = 60


def p4info_of(name):
    text = INFOS.get(name, PROGRAMS / f"{name}.p4info.txtpb").read_text()
    return text_format.Parse(text, p4i.P4Info())


class Answering:
    """A switch that answers requests without gRPC."""

    def __init__(self, name, backend, p4info=None):
        self.switch = SoftSwitch(grpc=None, backend=backend)
        self.configs = PipelineConfigs(self.switch)
        request = p4r.SetForwardingPipelineConfigRequest(
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        )
        request.config.p4info.CopyFrom(p4info or p4info_of(name))
        request.config.p4_device_config = ALL[name].read_bytes()
        self.configs.set(request)
        self.pipeline = self.configs.installed()

    def write(self, data):
        """The request without its updates, and their errors."""
        try:
            request = read_request(self.pipeline, data)
        except RequestError:
            return UNDECODED
        head = p4r.WriteRequest.FromString(request.message.SerializeToString())
        head.ClearField("updates")
        errors = apply_updates(self.switch, self.pipeline, request)
        return head.SerializeToString(deterministic=True), errors

    def read(self, **entity):
        responses = read_entities(self.switch, self.pipeline, [p4r.Entity(**entity)])
        entities = [e for each in responses for e in p4r.ReadResponse.FromString(each).entities]
        return sorted(map(str, entities))

    def everything(self):
        return [
            self.read(table_entry=p4r.TableEntry()),
            self.read(table_entry=p4r.TableEntry(counter_data=p4r.CounterData())),
            self.read(table_entry=p4r.TableEntry(priority=1)),
            self.read(table_entry=p4r.TableEntry(is_default_action=True)),
            self.read(direct_counter_entry=p4r.DirectCounterEntry()),
            self.read(direct_counter_entry=p4r.DirectCounterEntry(table_entry=p4r.TableEntry())),
        ]


def both(name, p4info=None):
    return [Answering(name, backend, p4info) for backend in (Backend.PYTHON, Backend.NATIVE)]


def requests_of(name, rng, count):
    """Serialized requests, half of them broken, with more errors in later ones."""
    made = Requests(p4info_of(name), rng)
    for number in range(count):
        data = made.request(0.1 * number / count).SerializeToString()
        yield changed(data, rng) if rng.random() < 0.5 else data


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 40))]
)
@pytest.mark.parametrize("name", ["tables", "switchgnn"])
def test_any_request_has_the_same_answer(name, seed):
    rng = random.Random(f"{name} {seed}")
    python, native = both(name)
    batched = 0
    for data in requests_of(name, rng, REQUESTS):
        assert native.write(data) == python.write(data), data.hex()
        batch = native.pipeline.batches.read(data)
        if batch is not None:
            batched += len(batch)
        if rng.random() < 0.2:
            assert native.everything() == python.everything(), data.hex()
    assert native.everything() == python.everything()
    assert batched > REQUESTS  # so that this is about batches at all


@pytest.mark.whole
def test_many_entries_come_and_go():
    rng = random.Random(3)
    python, native = both("switchgnn")
    p4info = p4info_of("switchgnn")
    table = next(t for t in p4info.tables if t.preamble.alias == "fanout")
    action = next(a for a in p4info.actions if a.preamble.id == table.action_refs[0].id)

    def update(kind, key):
        entry = p4r.TableEntry(table_id=table.preamble.id)
        for field in table.match_fields:
            entry.match.add(field_id=field.id).exact.value = bytes([key >> 8 * field.id & 0xFF])
        entry.action.action.action_id = action.preamble.id
        for parameter in action.params:
            entry.action.action.params.add(param_id=parameter.id, value=bytes([rng.randrange(2)]))
        return p4r.Update(type=kind, entity=p4r.Entity(table_entry=entry))

    for likely in (0.9, 0.1, 0.6, 0.0):
        for _ in range(4):
            updates = [
                update(1 if rng.random() < likely else rng.choice([2, 3, 3]), rng.getrandbits(18))
                for _ in range(500)
            ]
            data = p4r.WriteRequest(updates=updates).SerializeToString()
            assert native.write(data) == python.write(data)
        wanted = p4r.TableEntry(table_id=table.preamble.id)
        assert native.read(table_entry=wanted) == python.read(table_entry=wanted)


def test_a_p4info_that_says_other_widths():
    """Without agreement of P4Info and table, nothing is read in batches."""
    p4info = p4info_of("tables")
    for table in p4info.tables:
        for field in table.match_fields:
            field.bitwidth -= field.match_type == p4i.MatchField.EXACT and field.bitwidth > 1
    rng = random.Random(5)
    python, native = both("tables", p4info)
    made = Requests(p4info, rng)
    for _ in range(20):
        data = made.request(0.05).SerializeToString()
        assert native.write(data) == python.write(data)
        assert native.pipeline.batches.read(data) is None


def test_updates_without_contents_take_no_memory():
    """A request of empty updates is left to Python."""
    python, native = both("tables")
    data = b"\x22\x00" * 50_000
    assert native.pipeline.batches.read(data) is None
    assert native.write(data[:20_000]) == python.write(data[:20_000])


@pytest.mark.full
@pytest.mark.parametrize(
    "wrong",
    [
        ("if (known == NOWHERE || records.entry(known)->marks)", "if (known == NOWHERE)"),
        (" && value == expected", ""),
    ],
)
def test_a_mistake_of_the_reader_is_noticed(wrong, monkeypatch, tmp_path):
    assert plant(monkeypatch, tmp_path, "batches.h", *wrong)
    with pytest.raises(AssertionError):
        for seed in range(20):
            test_any_request_has_the_same_answer("tables", seed)


@pytest.mark.full
def test_no_byte_is_read_or_written_where_it_should_not_be(tmp_path):
    """Sanitizers watch ten thousand requests."""
    program = load_program(ALL["tables"].read_bytes())
    shapes = table_shapes(program)
    (tmp_path / "program.h").write_text(program_source(lower_program(program)))
    flags = ("-std=c++17", "-O1", "-g", "-w", "-march=native", "-fsanitize=address,undefined")
    unit = Path(__file__).parent / "read_batches.cpp"
    places = ("-I", tmp_path, "-I", build.RUNTIME, "-I", SHARED)
    runner = tmp_path / "runner"
    checks = ("-fno-sanitize=alignment", "-fno-sanitize-recover=all")
    subprocess.run([find_compiler(), *flags, *checks, *places, unit, "-o", runner], check=True)
    tables = build_schema(p4info_of("tables"), program).tables.values()
    flat = list(format_numbers([each for each in tables if shapes[each.name].exact], shapes))
    with (tmp_path / "requests").open("wb") as file:
        file.write(struct.pack(f"<{len(flat) + 1}Q", len(flat), *flat))
        for data in requests_of("tables", random.Random(11), 10_000):
            file.write(struct.pack("<Q", len(data)) + data)
    result = subprocess.run(
        [runner, tmp_path / "requests"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 10_000
