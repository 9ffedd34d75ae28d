"""Profiles are read or refused; the bundled ones follow from their sources (docs/switches.md)."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchgnn.controller.controls.banks import Banks
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.p4src import program_of
from switchgnn.planner.plan.banks import BANKS_OF_SWITCHES
from switchgnn.planner.presets import SLOT_BYTES
from switchgnn.profiles import ProfileError, SwitchProfile, find_profile, known_profiles

RATES = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
KEYS = {
    "banks": st.sampled_from(BANKS_OF_SWITCHES),
    "slot_bytes": st.integers(256, 2**32),
    "table_bytes": st.integers(1, 2**50),
    "passes_per_second": RATES,
    "ports": st.integers(1, 511),
    "port_gbits": RATES,
    "program_sizes": st.booleans(),
}


def toml(told):
    return "".join(f"{key} = {str(value).lower()}\n" for key, value in told.items())


def read(folder, text):
    file = folder / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return find_profile(str(file))


@given(told=st.fixed_dictionaries({}, optional=KEYS))
def test_what_is_written_is_read(tmp_path_factory, told):
    assert read(tmp_path_factory.mktemp("any"), toml(told)) == SwitchProfile("mine", **told)


@settings(max_examples=25)
@given(text=st.text())
def test_any_text_is_a_switch_or_a_sentence(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("any") / "mine.toml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        assert isinstance(find_profile(str(file)), SwitchProfile)
    except ProfileError as error:
        assert str(file) in str(error)
        assert str(error).endswith(".")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("bank = 1", "unknown field bank; known: .*banks"),
        ("banks = 3", "banks: invalid enum value 3"),
        *((line, "banks: expected") for line in ("banks = true", "banks = 1.0", "[banks]")),
        ("slot_bytes = 255", "slot_bytes: expected int >= 256"),
        ("slot_bytes = 549755813888", "slot_bytes: expected int <= 549755813887"),
        ('slot_bytes = "10MB"', "slot_bytes: expected int"),
        ("table_bytes = 0", "table_bytes: expected int >= 1"),
        ("passes_per_second = 0", "passes_per_second: expected float > 0.0"),
        ("passes_per_second = nan", "passes_per_second: expected float"),
        ("port_gbits = inf", "port_gbits: expected float"),
        ("ports = 512", "ports: expected int <= 511"),
        ("frame_seconds = 1.5", "frame_seconds: expected float <= 1.0"),
        ("program_sizes = 1", "program_sizes: expected"),
        ('name = "a\\u001bb"', "name: .* cannot be printed"),
        ("banks 1", "is not TOML"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_key(tmp_path, line, says):
    with pytest.raises(ProfileError, match=says) as error:
        read(tmp_path, line)
    assert str(tmp_path / "mine.toml") in str(error.value)


def test_names_and_files_that_are_none(tmp_path):
    with pytest.raises(ProfileError, match=r"No switch .tofino3.; known: .*tofino2, .*unlimited"):
        find_profile("tofino3")
    with pytest.raises(ProfileError, match=r"Cannot read the switch .*No such file"):
        find_profile(str(tmp_path / "none.toml"))
    with pytest.raises(ProfileError, match="Cannot read"):
        find_profile(str(tmp_path))
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 17))
    with pytest.raises(ProfileError, match="larger than 64 kB"):
        find_profile(str(tmp_path / "large.toml"))
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(ProfileError, match="Cannot read"):
        find_profile(str(tmp_path / "pipe.toml"))


def test_these_come_along():
    tofinos = ("tofino1", "tofino2", "tofino2-256", "tofino2-64", "tofino2-compiled")
    assert known_profiles() == ("bmv2", "embedded", "tofino", *tofinos, "unlimited")
    assert [find_profile(name).name for name in known_profiles()] == list(known_profiles())


ROOT = Path(__file__).parents[2]
# Of both chips: pipelines, blocks of SRAM in a stage, 1,024 words of 128 bits in a block, and
# stateful ALUs in a stage, each of one word of 32 bits.
PIPELINES, BLOCKS, BLOCK_BYTES, ALUS = 4, 80, 1024 * 128 // 8, 4


@pytest.mark.parametrize(
    ("name", "stages", "recirculated", "ports", "lanes", "pipelines"),
    [
        ("tofino1", 12, 100e9, 64, 32, 1),
        ("tofino2", 20, 400e9, 128, 32, 1),
        ("tofino2-64", 20, 400e9, 128, 64, 1),
        ("tofino2-256", 20, 400e9, 128, 256, 4),
    ],
)
def test_a_tofino_is_what_its_sources_say(name, stages, recirculated, ports, lanes, pipelines):
    """A frame is added to in each pipeline that it passes."""
    switch = find_profile(name)
    assert switch.banks == lanes // 32 <= pipelines * (stages * ALUS // 32)
    sram = PIPELINES * stages * BLOCKS * BLOCK_BYTES
    assert switch.table_bytes == sram - 2 * switch.slot_bytes
    passes = PIPELINES * recirculated / ((60 + 4 * lanes) * 8)
    assert switch.passes_per_second == pytest.approx(passes, rel=1e-9)
    assert (switch.ports, switch.port_gbits) == (ports, 100)
    assert not switch.program_sizes
    assert switch.frames_per_second(188) == pytest.approx(100e9 / (188 * 8))


@pytest.mark.parametrize("name", ["bmv2", "embedded", "tofino"])
def test_software_switches_have_what_the_program_compiles_to(name):
    switch, program = find_profile(name), program_of(name)
    layout = Layout.from_text(program.p4info)
    assert switch.program_sizes
    assert program_of(switch.program) == program
    assert switch.slots == program.slots
    assert switch.slot_bytes == program.slots * SLOT_BYTES
    assert switch.banks == len(Banks(layout).event_counters) * max(1, switch.least_lanes // 32)
    assert f"MAX_PORTS = {switch.ports};" in (ROOT / "p4src" / "headers.p4").read_text()
    assert (switch.table_bytes, switch.port_gbits) == (None, None)


def test_their_loops_are_as_fast_as_was_measured():
    """Contributions per second of the random graph, and its passes per contribution."""
    rows = (ROOT / "docs/evidence/benchmarks.md").read_text().splitlines()
    (measured,) = (row for row in rows if "embedded`, saturated, against BMv2" in row)
    (share,) = (row for row in rows if row.startswith("| random: passes per contribution"))
    for name, column in (("bmv2", 3), ("embedded", 2)):
        contributions = int(re.sub(r"\D", "", measured.split("|")[column]))
        passes = contributions * float(share.split("|")[2])
        assert find_profile(name).passes_per_second == pytest.approx(passes, rel=0.005)
