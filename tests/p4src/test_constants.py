"""P4 and Python agree on every number that both write down."""

import re
from dataclasses import fields

from switchgnn.controller.base import place
from switchgnn.controller.controls.banks import PASS_CELLS, PASSES_COUNTER, BankEvents, reduce_slots
from switchgnn.controller.controls.job import NAME_BYTES, Jobs
from switchgnn.controller.controls.loop import result_group
from switchgnn.controller.controls.outcome import COUNTER, OUTCOME_CELLS, Outcome
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.host.base.operations import Operation
from switchgnn.host.wire import header
from switchgnn.p4src.program import SOURCE_FOLDER, load_program

HEADERS = (SOURCE_FOLDER / "headers.p4").read_text()
LAYOUT = Layout.from_text(load_program().p4info)


def test_kinds():
    body = re.search(r"enum bit<4> kind_t \{(.*?)\}", HEADERS, re.DOTALL).group(1)
    kinds = {name: int(number) for name, number in re.findall(r"(\w+)\s*= (\d+)", body)}
    assert kinds == {kind.name: int(kind) for kind in header.Kind}


def test_refusals():
    found = re.findall(r"const count_t REFUSAL_(\w+)\s*= (\d+);", HEADERS)
    assert {name: int(number) for name, number in found} == {
        refusal.name: int(refusal) for refusal in header.Refusal
    }


def test_numbers():
    def constant(name):
        return int(re.search(rf"{name}\s*= (\w+);", HEADERS).group(1), 0)

    assert constant("PROTOCOL_SWITCHGNN") == header.PROTOCOL
    assert constant("SWITCHGNN_VERSION") == header.VERSION
    assert constant("ETHERTYPE_IPV4") == header.ETHERTYPE_IPV4


def test_operations():
    """Each operation but the sum has its own first fragment, in the order of the conditions."""
    text = (SOURCE_FOLDER / "addition.p4").read_text()
    firsts = [int(number) for number in re.findall(r"#define FIRST_\w+ (\d+)", text)]
    assert firsts == sorted({each.rule.first_fragment for each in Operation} - {0})
    tested = re.findall(r"fragment >= (FIRST_\w+)", text)
    assert tested == re.findall(r"#define (FIRST_\w+) \d", text)[::-1]


def test_widths():
    found = re.findall(r"const width_t LANES_(\d+) = (\d+);", HEADERS)
    assert {int(lanes): int(code) for lanes, code in found} == {
        8 * groups: groups - 1 for groups in (1, 2, 4, 8, 16, 32)
    }
    assert [header.lanes_of(code) for code in range(32)] == [*range(8, 257, 8)]


def test_bits():
    found = re.findall(r"const bits_t (BITS_(?:\d+)|NO_BODY) = (\d);", HEADERS)
    codes = {f"BITS_{bits}" if bits else "NO_BODY": header.BITS.index(bits) for bits in header.BITS}
    assert {name: int(code) for name, code in found} == codes


def test_bodies_of_lanes():
    """The groups of 8 words that Admission lets in and Payload makes are those of hosts."""
    (text,) = re.findall(r"#define GROUPS\(width, bits\) (.*)", HEADERS)
    expression = text.replace("(bit<6>) ", "").replace("6w1", "1")
    admission = (SOURCE_FOLDER / "session.p4").read_text()
    limits = re.findall(r"bits != BITS_(\d+) \|\| hdr.switchgnn.width > LANES_(\d+)", admission)
    for width in range(32):
        lanes = header.lanes_of(width)
        allowed = {32, 16, 8} - {int(bits) for bits, most in limits if lanes <= int(most)}
        assert allowed == set(header.allowed_bits(lanes)) - {0}
        for bits in allowed:
            groups = eval(expression, {"width": width, "bits": header.BITS.index(bits)})  # noqa: S307
            assert 32 * groups == header.payload_bytes(width, bits)


def test_lengths_that_the_switch_writes():
    lengths = {}
    for name, expression in re.findall(r"const bit<16> (\w+_LENGTH) = ([\w +]+);", HEADERS):
        lengths[name] = eval(expression, {**lengths})  # noqa: S307
    assert lengths == {
        "BARE_LENGTH": header.BODY_AT - header.ETHERNET_BYTES,
        "WAITING_LENGTH": header.BARRIER_FRAME_BYTES
        + header.HEARTBEATS_BYTES
        - header.ETHERNET_BYTES,
    }


def constants(file, kind):
    found = re.findall(rf"const {kind}\s+(\w+)\s*=\s*(\d+);", (SOURCE_FOLDER / file).read_text())
    return {name: int(value) for name, value in found}


def macro(file, name):
    return int(re.search(rf"#define {name} (\d+)", (SOURCE_FOLDER / file).read_text())[1])


def test_outcomes_are_those_of_the_sources():
    found = constants("outcome.p4", "outcome_t")
    assert found.pop("PENDING") == OUTCOME_CELLS - 1
    assert {outcome.name: outcome.value for outcome in Outcome} == found
    assert len(Outcome) < OUTCOME_CELLS == 1 << macro("outcome.p4", "OUTCOME_BITS")


def test_parts_of_jobs_are_those_of_the_sources():
    """Of counters and registers, job 0 is that of ports without a job."""
    jobs = constants("headers.p4", "bit<32>")["MAX_JOBS"]
    assert Jobs(LAYOUT).max_jobs == jobs
    assert LAYOUT.counter(COUNTER).size == (1 + jobs) * OUTCOME_CELLS
    assert LAYOUT.counter(PASSES_COUNTER).size == (1 + jobs) * PASS_CELLS
    assert 1 << macro("metadata.p4", "PASS_BITS") == PASS_CELLS > macro("headers.p4", "BANKS")
    assert reduce_slots(LAYOUT) == 1 << macro("headers.p4", "REDUCE_SLOT_BITS")
    (name,) = [each for each in Jobs(LAYOUT).table.action("set_job").params if each.name == "name"]
    assert name.bits == 8 * NAME_BYTES


def test_slot_events_are_those_of_the_sources():
    found = constants("metadata.p4", r"bit<32>")
    assert found.pop("SLOT_EVENTS") == len(found)
    names = [field.name for field in fields(BankEvents)]
    assert {f"SLOT_{name.upper()}": index for index, name in enumerate(names[:-1])} == found
    text = (SOURCE_FOLDER / "strawman" / "banks.p4").read_text()
    assert f"SLOT_{names[-1].upper()} = SLOT_EVENTS;" in text


def test_loop_ports_and_groups_are_those_of_the_sizes():
    sizes = constants("headers.p4", "bit<32>")
    assert constants("headers.p4", "bit<9>")["FIRST_LOOP_PORT"] == place.FIRST_LOOP_PORT
    assert 1 << macro("headers.p4", "LOOP_LANE_BITS") == place.LOOP_LANES
    groups = constants("headers.p4", "bit<16>")
    assert (groups["WORKERS_GROUP"], groups["STATIONS_GROUP"]) == (0, 1)
    everybody = [place.Place(job) for job in range(1, sizes["MAX_JOBS"] + 1)]
    ports = [port for each in everybody for port in each.loop_ports]
    own = [group for each in everybody for group in (each.workers_group, each.workers_group + 1)]
    assert len(set(ports)) == len(ports) and min(ports) >= sizes["MAX_PORTS"]
    assert len(set(own)) == len(own) and max(own) < result_group(0)
