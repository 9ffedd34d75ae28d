# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sums of wide fields whose words do not carry into each other are vector code."""

import platform
import re
import shutil
import subprocess

import pytest

from switchgnn.p4src import load_program
from switchgnn.softswitch.loader import GivenProgram
from switchgnn.softswitch.native.engine import native_library
from tests.support.native import needs_compiler

# Of 64-bit words, on vectors of 16 to 64 bytes.
ADD = re.compile(r"\bv?paddq\s.*%([xyz])mm")
WIDTHS = {"x": 128, "y": 256, "z": 512}
LANES, BANKS = 1024, 8
# For some processors compilers keep the loop over a slot: the end of one, from 0 on.
LOOP = re.compile(r"add\s+\$0x(\w+),(%\w+)\n.*cmp\s+\$0x(\w+),\2\n.*$")
JUMP = re.compile(r"\bj\w+\s")


def bits_added(code):
    """The bits that vector instructions add in all, each as often as its loop runs."""
    bits = 0
    for add in ADD.finditer(code):
        loop = LOOP.search(JUMP.split(code[add.start() :], maxsplit=1)[0])
        times = int(loop[3], 16) // int(loop[1], 16) if loop else 1
        bits += times * WIDTHS[add[1]]
    return bits


@pytest.mark.whole
@needs_compiler
@pytest.mark.skipif(platform.machine() != "x86_64", reason="knows the names of x86's instructions")
@pytest.mark.skipif(not shutil.which("objdump"), reason="needs objdump, which comes with g++")
def test_the_lanes_of_a_slot_are_added_at_once():
    """By `add_by_words`: a sum with carries has `adc` in its place."""
    library = native_library(GivenProgram(load_program().json))
    told = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", "-C", library],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    # Compilers may divide it into what is hot and cold.
    parts = told.split("<Program::ingress(")[1:]
    ingress = "".join(part.partition("\n\n")[0] for part in parts)
    assert ingress
    assert bits_added(ingress) >= BANKS * LANES
