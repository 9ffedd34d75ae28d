# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A link of the models and ns-3's own point-to-point device deliver at the same time."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from switchgnn.base.native import find_compiler
from switchgnn.lab.simulator.compile import MODELS, find_wheel


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    program = tmp_path_factory.mktemp("link") / "point_to_point"
    wheel = find_wheel()
    libraries = [
        str(wheel.core).replace("-core", f"-{name}")
        for name in ("core", "network", "point-to-point")
    ]
    source = Path(__file__).parent / "point_to_point.cc"
    places = ["-isystem", wheel.include, f"-I{MODELS}", f"-Wl,-rpath,{wheel.core.parent}"]
    command = [find_compiler(), "-std=c++20", "-O0", *places, source, MODELS / "network/link.cc"]
    subprocess.run([*command, *libraries, "-o", program], check=True)
    return program


@pytest.mark.parametrize(
    "bits_per_second",
    [37e9, *(pytest.param(rate, marks=pytest.mark.full) for rate in (10e6, 100e9))],
)
def test_frames_arrive_when_those_of_ns3_do(program, bits_per_second):
    command = [program, str(int(bits_per_second)), "2000000"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    model, device = np.array(told.split(), dtype=np.int64).reshape(-1, 2).T
    assert len(model) == 2_000
    # At rates of odd picoseconds per byte one rounds and the other cuts off, frame by frame.
    odd = 188 * 8e12 / bits_per_second % 1
    assert np.abs(model - device).max() <= (len(model) if odd else 0)
