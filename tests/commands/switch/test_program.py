# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which P4 program a switch begins with."""

import os

import pytest

from switchgnn.commands.errors import ProgramError
from switchgnn.commands.switch import find_program
from switchgnn.controller.p4runtime.client import program_cookie
from switchgnn.p4src import load_program, load_strawman
from switchgnn.p4src.program import SWITCHGNN
from tests.softswitch.harness import PROGRAMS


@pytest.mark.parametrize(
    ("name", "load"), [("switchgnn", load_program), ("strawman", load_strawman)]
)
def test_those_of_the_product(name, load):
    found, program = find_program(name, None), load()
    assert found.p4_device_config == program.json
    assert found.cookie.cookie == program_cookie(program)
    assert found.p4info.tables


def test_none_until_a_controller_comes():
    assert find_program("none", None) is None


def test_one_of_ones_own(tmp_path):
    found = find_program(str(PROGRAMS / "tables.json"), None)
    assert found.p4_device_config == (PROGRAMS / "tables.json").read_bytes()
    assert found.p4info.tables
    assert not found.HasField("cookie")
    moved = tmp_path / "elsewhere.txt"
    moved.write_bytes((PROGRAMS / "tables.p4info.txtpb").read_bytes())
    assert find_program(str(PROGRAMS / "tables.json"), moved).p4info == found.p4info


def refused(*arguments):
    with pytest.raises(ProgramError) as caught:
        find_program(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_not_there(tmp_path):
    assert "nowhere.json" in refused(str(tmp_path / "nowhere.json"), None)
    alone = tmp_path / "alone.json"
    alone.write_text("{}")
    assert "alone.p4info.txtpb" in refused(str(alone), None)
    # p4c's source is no program yet.
    assert "p4info" in refused(str(SWITCHGNN.main), None)


def test_a_p4info_that_is_something_else(tmp_path):
    for content in (b"tables {", b"\xff\xfe", b"nonsense: 1"):
        path = tmp_path / "p4info"
        path.write_bytes(content)
        assert "no P4Info" in refused(str(PROGRAMS / "tables.json"), path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "pipe" in refused(str(PROGRAMS / "tables.json"), pipe)


def test_p4info_is_for_a_file():
    assert "--p4info" in refused("switchgnn", PROGRAMS / "tables.p4info.txtpb")
