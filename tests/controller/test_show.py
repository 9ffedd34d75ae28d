# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Summaries and counters, and the command line around them."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from switchgnn.controller import Outcome, install, read_counters, show, show_entries
from switchgnn.controller.__main__ import main
from switchgnn.controller.cli import app
from switchgnn.controller.errors import ControllerError, OtherProgramError, PipelineMissingError
from switchgnn.planner.plan.manifest import decode_manifest, encode_manifest, seal
from tests.controller.plans import make_plan, write_ring

PLAN = make_plan()


@pytest.fixture
def served(fake, client, network, program):
    install(PLAN, [client], network, program=program)
    fake.contents.counters = {
        ("outcome", Outcome.DUPLICATE): 3,
        ("outcome", Outcome.UNKNOWN_KIND): 1,
        ("passes", 0): 5,
        ("passes", 8): 2,
        ("bank1.events", 0): 4,
        ("bank7.events", 2): 6,
        ("unrouted", 0): 7,
        ("marked", 0): 8,
        ("releases", 2): 9,
    }
    return client


def test_a_summary(served):
    state = show(served)
    assert state.session.plan == PLAN.number
    assert (state.session.session, state.session.workers, state.groups) == (1, 3, 97)
    assert state.ecn_threshold == 32
    tables = {table.name: table for table in state.tables}
    assert tables["fanout"].entries == 16
    assert tables["worker"].occupancy == 3 / 256
    json.dumps(state.as_json())


def test_counters_by_name(served):
    counters = read_counters(served)
    assert counters.outcomes[Outcome.DUPLICATE] == 3
    assert counters.passes.passes == 7
    assert counters.passes.contributions == 16
    assert counters.banks[1].completed == 4
    assert counters.banks[7].overfull == 6
    assert counters.named()["unrouted"] == 7
    assert counters.named()["marked"] == 8
    assert counters.releases[:4] == (0, 0, 9, 0)
    assert show(served).as_json()["releases_by_worker"] == [0, 0, 9]


def test_entries_of_each_table(served):
    for name in ("worker", "station", "source", "fanout", "result", "departure", "groups"):
        assert show_entries(served, name)
    assert len(show_entries(served, "fanout", 3)) == 3


def test_an_unknown_table(served):
    with pytest.raises(ControllerError, match="no table nonsense with entries: choose from depart"):
        show_entries(served, "nonsense")


def test_a_switch_without_a_program(client):
    with pytest.raises(PipelineMissingError, match="install a plan first"):
        show(client)


def test_a_switch_with_a_foreign_program(client, program):
    client.set_pipeline(replace(program, p4info='pkg_info { arch: "v1model" }'), 1)
    with pytest.raises(OtherProgramError):
        show(client)


# The command line.


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path, program):
    write_ring(tmp_path / "plan", program)
    return tmp_path / "plan"


def test_install_show_and_clear_from_the_command_line(fake, folder):
    result = run("install", folder, "--address", fake.address)
    assert result.exit_code == 0, result.output
    assert "P4 program loaded" in result.stdout
    assert "Session 1." in result.stdout

    result = run("install", folder, "--address", fake.address, "--json")
    report = json.loads(result.stdout)
    assert report["switches"][0]["counts"] == {"inserted": 0, "modified": 0, "deleted": 0}

    result = run("show", "--address", fake.address)
    assert result.exit_code == 0, result.output
    assert "session 1" in result.stdout

    (state,) = json.loads(run("show", "--address", fake.address, "--json").stdout)
    assert state["tables"]["source"]["entries"] == 4

    result = run("show", "--address", fake.address, "--entries", "worker", "--json")
    assert json.loads(result.stdout)[0]["entries"][0] == {"port": 1, "worker": 0}
    assert "station" in run("show", "--address", fake.address, "--entries", "station").stdout

    result = run("clear", "--address", fake.address)
    assert result.exit_code == 0, result.output
    assert not fake.contents.entries


def test_failures_reach_the_main_program_as_errors(tmp_path):
    result = run("install", tmp_path)
    assert isinstance(result.exception, Exception)
    assert "is not a plan" in str(result.exception)


def test_a_plan_that_does_not_fit_is_refused_without_a_switch(folder, program):
    manifest = folder / "plan.json"
    changed = decode_manifest(manifest.read_bytes(), "plan.json")
    changed = seal(replace(changed, program="12" * 32))
    manifest.write_bytes(encode_manifest(changed))
    result = run("install", folder, "--address", "127.0.0.1:1")
    assert "for another P4 program" in str(result.exception)


def test_the_module_prints_a_sentence_and_exits_with_2(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["controller", "install", str(tmp_path)])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert "is not a plan" in capsys.readouterr().err
