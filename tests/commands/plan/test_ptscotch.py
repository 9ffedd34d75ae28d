# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn plan --partition ptscotch:RANKS` and `switchgnn shard` as their user meets them."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from switchgnn.base.errors import SwitchGNNError
from switchgnn.commands.application import app
from switchgnn.commands.doctor import examine
from switchgnn.planner import build_plan, load_assignment, load_graph, read_manifest, write_plan
from switchgnn.planner.check.plan import check_plan
from switchgnn.planner.partition.ptscotch import ptscotch, ptscotch_missing
from tests.support.documents import run_command

MISSING = ptscotch_missing()
needs_ptscotch = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
PAGE = Path(__file__).parents[3] / "docs" / "partitions.md"


def call(*arguments):
    result = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments):
    with pytest.raises(SwitchGNNError) as error:
        call(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


@needs_ptscotch
@pytest.mark.parametrize("name", ["ptscotch:2", "ptscotch:4"])
def test_a_plan_by_ptscotch(tmp_path, name):
    folder = tmp_path / "plan"
    plan = ["plan", "digits", "--workers", 4, "--slots", 128, "--partition", name]
    found = json.loads(call(*plan, "--out", folder, "--json"))
    assert read_manifest(folder).partition.method == name
    assert check_plan(folder, load_graph("digits")).workers == 4
    forward = found["directions"]["forward"]["ways"]
    assert forward["paper"] != forward["plan"]


@pytest.mark.parametrize("name", ["ptscotch", "ptscotch:", "ptscotch:0", "ptscotch:two"])
def test_a_number_of_ranks_is_needed(name):
    said = refused("plan", "karate", "--workers", 2, "--partition", name)
    assert "does not say how many ranks: write it as ptscotch:2" in said


def test_shards_are_written_and_what_to_do_with_them_is_said(tmp_path):
    folder = tmp_path / "shards"
    text = call("shard", "karate", "--ranks", 3, "--out", folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        f"shard-00{rank}.npz" for rank in range(3)
    ]
    assert "34 vertices, 3 shards" in text
    assert f"mpirun -n 3 python -m switchgnn.planner.partition.ptscotch_rank {folder}" in text
    assert "from 1 to 34 shards" in refused("shard", "karate", "--ranks", 35, "--out", folder)


def test_the_doctor_names_what_it_needs():
    findings = {finding.name: finding for finding in examine()}
    needed = [findings[name] for name in ("mpirun", "mpi4py", "libptscotch")]
    assert not any(finding.required for finding in needed)
    assert all(finding.found for finding in needed) == (MISSING is None)
    assert [finding.mend.split()[0] for finding in needed] == ["apt-get", "pip", "apt-get"]


@needs_ptscotch
def test_the_commands_for_several_machines(tmp_path):
    """Those of the page, with all ranks on this machine."""
    page = PAGE.read_text(encoding="utf-8")
    commands = re.findall(
        r"^(switchgnn shard .*|mpirun .*|switchgnn plan .*ptscotch.*)", page, re.M
    )
    assert [command.split()[0] for command in commands] == ["switchgnn", "switchgnn", "mpirun"]
    for command in commands:
        here = command.replace("--hostfile machines", "--oversubscribe")
        run_command(here, tmp_path)
    graph = load_graph("digits")
    assignment = load_assignment(tmp_path / "assignment.safetensors")
    assert np.array_equal(assignment, ptscotch(graph, 4, 0, ranks=2))
    plan = build_plan(graph, workers=4, slots=256, program="ab", assignment=assignment)
    write_plan(plan, tmp_path / "plan")
    assert check_plan(tmp_path / "plan", graph).workers == 4
