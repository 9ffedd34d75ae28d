# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""docs/monitoring.md: its commands run, and it names what is exported."""

import re
import shlex

import pytest
from typer.main import get_command

from switchgnn.controller.cli import app
from tests.deploy.test_dashboard import exported  # noqa: F401  a fixture
from tests.deploy.unit_file import DEPLOY
from tests.support.commands import switchgnn
from tests.support.listeners import free_ports

WORKERS = 2

PAGE = (DEPLOY.parent / "docs/monitoring.md").read_text()
COMMANDS = [
    line
    for block in re.findall(r"^```bash\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]


def test_the_metrics_of_the_table_are_exported(exported):  # noqa: F811
    named = set(re.findall(r"`(switchgnn_\w+)", PAGE))
    known = {name.removesuffix("_bucket") for name in exported}
    assert len(named) > 15
    assert named <= known


def test_the_first_command_has_the_options_that_it_is_given():
    program, group, command, *words = shlex.split(COMMANDS[0])
    assert (program, group, command) == ("switchgnn", "controller", "metrics")
    found = get_command(app).commands[command]
    with found.make_context(command, words) as context:
        assert list(context.params["address"]) == ["127.0.0.1:9559"]


@pytest.mark.whole
def test_the_second_command_runs():
    words = shlex.split(COMMANDS[1])[1:]
    place = words.index("--metrics") + 1
    # Others may use the port of the page.
    words[place] = str(free_ports(2 * WORKERS))
    assert switchgnn(*words).returncode == 0
