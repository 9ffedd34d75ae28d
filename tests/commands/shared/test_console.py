# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Names from users are printed as they are."""

import re
from pathlib import Path

import pytest
from rich.table import Table
from typer.testing import CliRunner

from switchgnn.commands.application import app
from switchgnn.commands.doctor import Finding
from switchgnn.commands.shared.console import plain_console
from tests.support.commands import switchgnn

NAME = "a[/x] [red]b[/red] [mininet]"
COMMANDS = Path(__file__).parents[3] / "switchgnn" / "commands"


def test_brackets_in_sentences_and_tables_stay(capsys):
    table = Table("[bold]head", title="[title]")
    table.add_row(NAME)
    for each in (NAME, table):
        plain_console().print(each)
    said = capsys.readouterr().out
    assert said.count(NAME) == 2
    assert "[bold]head" in said and "[title]" in said


def test_all_commands_print_with_it():
    """A console of its own would take brackets for markup."""
    files = sorted(COMMANDS.rglob("*.py"))
    own = [file.name for file in files if re.search(r"\bConsole\(", file.read_text())]
    assert own == ["console.py"]


def test_doctor_names_an_extra(monkeypatch):
    finding = Finding("mininet", "[use]", False, None, "pip install -e '.[mininet]'")
    monkeypatch.setattr("switchgnn.commands.doctor.examine", lambda: [finding])
    said = CliRunner().invoke(app, ["doctor"]).output
    assert "pip install -e '.[mininet]'" in said
    assert "[use]" in said and "absent" in said


@pytest.mark.whole
def test_packets_are_kept_in_a_folder_with_brackets(tmp_path):
    words = ("run", "--graph", "karate", "--workers", 2, "--rounds", 1)
    here = ("--target", "embedded", "--fabric", "loopback", "--backend", "python")
    (tmp_path / "pc[").mkdir()
    done = switchgnn(*words, *here, "--pcap", "pc[/x]", folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "pc[/x]" in done.stdout
    assert list((tmp_path / "pc[" / "x]").iterdir())
