# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The numbers of the bundled profiles follow from their sources (docs/switches.md)."""

import re
from pathlib import Path

import pytest

from switchgnn.controller.controls.banks import Banks
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.p4src import load_program
from switchgnn.planner.presets import SLOT_BYTES
from switchgnn.profiles import find_profile

ROOT = Path(__file__).parents[2]
# Of both chips: pipelines, blocks of SRAM in a stage, 1,024 words of 128 bits in a block, and
# stateful ALUs in a stage, each of one word of 32 bits.
PIPELINES, BLOCKS, BLOCK_BYTES, ALUS = 4, 80, 1024 * 128 // 8, 4
LANES = 32
FRAME_BITS = 188 * 8


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
    assert switch.banks == lanes // LANES <= pipelines * (stages * ALUS // LANES)
    sram = PIPELINES * stages * BLOCKS * BLOCK_BYTES
    assert switch.table_bytes == sram - 2 * switch.slot_bytes
    passes = PIPELINES * recirculated / ((60 + 4 * lanes) * 8)
    assert switch.passes_per_second == pytest.approx(passes, rel=1e-9)
    assert (switch.ports, switch.port_gbits) == (ports, 100)
    assert not switch.program_sizes
    assert switch.frames_per_second(188) == pytest.approx(100e9 / FRAME_BITS)


@pytest.mark.parametrize("name", ["bmv2", "embedded"])
def test_software_switches_have_what_the_program_compiles_to(name):
    switch, program = find_profile(name), load_program()
    layout = Layout.from_text(program.p4info)
    assert switch.program_sizes
    assert switch.slots == program.slots
    assert switch.slot_bytes == program.slots * SLOT_BYTES
    assert switch.banks == Banks(layout).banks
    sizes = (ROOT / "p4src" / "sizes.p4").read_text()
    assert f"MAX_PORTS = {switch.ports};" in sizes
    assert (switch.table_bytes, switch.port_gbits) == (None, None)


@pytest.mark.parametrize(
    ("name", "line", "column"),
    [
        ("bmv2", "embedded`, saturated, against BMv2", 3),
        ("embedded", "embedded`, saturated, against BMv2", 2),
    ],
)
def test_their_loops_are_as_fast_as_was_measured(name, line, column):
    """Contributions per second of the random graph, and its passes per contribution."""
    rows = (ROOT / "docs" / "benchmarks.md").read_text().splitlines()
    (measured,) = (row for row in rows if line in row)
    (share,) = (row for row in rows if row.startswith("| random: passes per contribution"))
    contributions = int(re.sub(r"\D", "", measured.split("|")[column]))
    passes = contributions * float(share.split("|")[2])
    assert find_profile(name).passes_per_second == pytest.approx(passes, rel=0.005)
