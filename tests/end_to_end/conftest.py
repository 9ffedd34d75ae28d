# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Every combination of switch and fabric that this machine has."""

import json

import pytest

from tests.support.commands import switchgnn
from tests.support.markers import COMBINATIONS, MININET_COMBINATIONS, words_of


@pytest.fixture(params=COMBINATIONS)
def combination(request):
    return request.param


@pytest.fixture(params=MININET_COMBINATIONS)
def mininet_combination(request):
    return request.param


def run_json(combination, *arguments):
    result = switchgnn("run", *words_of(combination), "--json", *arguments)
    assert result.returncode == 0, result.stderr[-2000:]
    report = json.loads(result.stdout)
    assert "python" not in combination or report["backend"] == "python"
    return report
