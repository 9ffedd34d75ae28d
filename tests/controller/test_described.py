# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`--network FILE`: the controller takes switches, addresses and leaves from a network file."""

import json

import pytest
from typer.testing import CliRunner

from switchgnn.base.described import TlsFiles, network_text
from switchgnn.controller.cli import app, parts_by_number
from switchgnn.controller.errors import PlanRefusedError
from switchgnn.controller.target import client_of, parts_for
from switchgnn.p4src import load_program
from switchgnn.planner.build import build_plan
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.plan.files import write_plan
from switchgnn.topologies import Target
from tests.network.usual import described_leaf_spine, described_star
from tests.support.fabrics import bed


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan") / "plan"
    digest = load_program().digest
    write_plan(build_plan(load_graph("karate"), workers=4, slots=16, program=digest), folder)
    return folder


@pytest.mark.parametrize(
    ("network", "leaves", "spines"),
    [(described_star(4), 0, 1), (described_leaf_spine((0, 0, 1, 1), 2), 2, 2)],
)
def test_parts_are_those_of_leaves_and_spines_by_number(plan, network, leaves, spines):
    found = parts_for(plan, network)
    usual = parts_by_number(plan, len(network.switches), leaves, spines)
    assert [around for _, around in found] == [around for _, around in usual]
    for (one, _), (other, _) in zip(found, usual, strict=True):
        assert (one.members, one.above, one.number) == (other.members, other.above, other.number)
        assert (one.switch.entry_slot == other.switch.entry_slot).all()


def test_a_plan_for_others_is_refused(plan):
    with pytest.raises(PlanRefusedError, match="is for 4 workers; the network has 3"):
        parts_for(plan, described_star(3))


def test_a_client_has_what_the_file_says(tmp_path):
    tls = TlsFiles(tmp_path / "ca.pem", tmp_path / "own.pem", tmp_path / "own.key")
    (switch,) = described_star(1, grpc="192.0.2.1:7", device_id=3, tls=tls).switches
    client = client_of(switch, primary=False)
    assert client.address == "192.0.2.1:7"
    assert client.device_id == 3


@pytest.mark.whole
def test_install_and_show(plan, tmp_path):
    with bed(Target.EMBEDDED, 4, tmp_path) as made:
        file = tmp_path / "network.toml"
        file.write_text(network_text(described_star(4, grpc=made.address)))
        told = run("install", plan, "--network", file, "--json")
        assert told.exit_code == 0, told.output
        assert json.loads(told.stdout)["session"] == 1
        (shown,) = json.loads(run("show", "--network", file, "--json").stdout)
        assert shown["address"] == made.address
        assert run("clear", "--network", file).exit_code == 0
        both = run("show", "--network", file, "--address", made.address)
    assert both.exit_code == 2
    assert "leave out --address" in " ".join(both.output.split())


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))
