# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Every combination of switch and fabric that this machine has."""

import json
import os
import subprocess
import sys

import pytest

from switchgnn.topologies.mininet_fabric import mininet_missing
from switchgnn.topologies.targets import BMV2_PROGRAM, bmv2_installed

needs_mininet = pytest.mark.skipif(bool(mininet_missing()), reason=mininet_missing() or "")
needs_bmv2 = pytest.mark.skipif(not bmv2_installed(), reason=f"{BMV2_PROGRAM} is not on the PATH")

COMBINATIONS = [
    pytest.param(("embedded", "loopback"), id="embedded-loopback"),
    pytest.param(("embedded", "mininet"), id="embedded-mininet", marks=needs_mininet),
    pytest.param(("bmv2", "mininet"), id="bmv2-mininet", marks=[needs_mininet, needs_bmv2]),
]
MININET_COMBINATIONS = COMBINATIONS[1:]


@pytest.fixture(params=COMBINATIONS)
def combination(request):
    return request.param


@pytest.fixture(params=MININET_COMBINATIONS)
def mininet_combination(request):
    return request.param


def switchgnn(*arguments, timeout=100, scratch=None):
    """Run the program as a user does; temporary files go to `scratch` if it is given."""
    return subprocess.run(
        [sys.executable, "-m", "switchgnn.commands", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, "TMPDIR": scratch} if scratch else None,
    )


def run_json(combination, *arguments):
    """Run `switchgnn run --json` and return its object."""
    target, fabric = combination
    result = switchgnn("run", "--target", target, "--fabric", fabric, "--json", *arguments)
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout)
