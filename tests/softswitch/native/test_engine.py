# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a native engine keeps and gives."""

import pytest

from switchgnn.p4src import load_program
from tests.softswitch.harness import NativeRig, config_bytes

UNICAST = 2


def test_more_frames_leave_than_are_moved_at_once():
    rig = NativeRig(config_bytes("fates"))
    sizes = [60_000, 1, 65_000, *range(1_000, 60_000, 1_000)]
    for place, size in enumerate(sizes):
        frame = bytes([UNICAST, 0, 0, 0, 0, 1 + place % 9]) + bytes([place]) * size
        rig.engine.receive(0, frame)
    left = rig.engine.captured()
    assert [port for port, _ in left] == [1 + place % 9 for place in range(len(sizes))]
    for place, (size, (_, frame)) in enumerate(zip(sizes, left, strict=True)):
        assert frame[-size:] == bytes([place]) * size
    assert rig.engine.captured() == []


@pytest.fixture(scope="module")
def registers():
    return NativeRig(load_program().json).state.registers


def test_arrays_have_their_own_memory(registers):
    for register in registers.values():
        assert not any(register.cells[:1]), "fresh, and nobody else has written here"
        for place in (register.size - 1, register.size // 2):
            register.cells[place] = (1 << register.width) - 1
        register.cells[0] = 1
    for register in registers.values():
        assert register.cells[0] == 1
        if register.size > 1:
            assert register.cells[register.size - 1] == (1 << register.width) - 1


def test_wide_cells_are_a_list(registers):
    register = registers["SwitchIngress.banks.lanes0.value"]
    cells, numbers = register.cells, [(7 << 1000) + n * (1 << 500 | 1) for n in range(10)]
    cells[5:15] = numbers
    assert cells[5:15] == numbers
    assert cells[5:15:3] == numbers[::3]
    assert cells[14:4:-1] == numbers[::-1]
    assert [cells[place] for place in range(5, 15)] == numbers
    assert cells[-len(cells) + 5] == numbers[0]
    with pytest.raises(IndexError):
        cells[len(cells)]


def test_an_image_changes_with_its_cells_and_with_no_others(registers):
    register = registers["SwitchIngress.banks.bank1.state"]
    before = register.image(4)
    register.cells[4] = 1
    assert register.image(4) == before
    register.cells[3] = 1 << 95
    assert register.image(4) != before
    register.cells[3] = 0
    assert register.image(4) == before
