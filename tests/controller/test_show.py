"""Summaries and counters, and the command line around them."""

import json
from dataclasses import replace

import pytest

from switchgnn.base.network_file import network_text
from switchgnn.commands.controller import parts_by_number
from switchgnn.controller import Outcome, read_counters, show, show_entries
from switchgnn.controller.base import errors
from switchgnn.controller.controls.banks import PASS_CELLS
from switchgnn.controller.controls.congestion import Marking
from switchgnn.controller.controls.outcome import OUTCOME_CELLS
from switchgnn.controller.target import parts_for
from switchgnn.p4src import load_program
from switchgnn.planner import build_plan, load_graph, write_plan
from tests.controller.plans import install, make_plan, run
from tests.network.usual import described_leaf_spine, described_star

PLAN = make_plan()


@pytest.fixture
def served(fake, client, network, program):
    install(PLAN, [client], network, program=program)
    fake.contents.counters = {
        ("outcome", OUTCOME_CELLS + Outcome.DUPLICATE): 3,
        ("outcome", OUTCOME_CELLS + Outcome.UNKNOWN_KIND): 1,
        ("outcome", Outcome.NO_JOB): 11,
        ("passes", PASS_CELLS + 0): 5,
        ("passes", PASS_CELLS + 8): 2,
        ("bank1.events", 0): 4,
        ("bank7.events", 2): 6,
        ("unrouted", 0): 7,
        ("marked", 0): 8,
        ("releases", 2): 9,
    }
    return client


def test_a_summary(served):
    state = show(served)
    (job,) = state.jobs
    assert job.session.plan == PLAN.manifest.number
    assert (job.session.session, job.session.workers, state.tables.groups) == (1, 3, 1 + 3 * 8)
    assert job.marking == Marking(32, 32)
    assert job.session.reduces == job.session.workers
    tables = {table.name: table for table in state.tables.tables}
    assert tables["fanout"].entries == 16
    assert tables["worker"].occupancy == 3 / 256
    json.dumps(state.as_json())


def test_counters_by_name(served):
    counters = read_counters(served)
    assert counters.outcomes[Outcome.DUPLICATE] == counters.jobs[1].outcomes[Outcome.DUPLICATE] == 3
    assert counters.jobs[0].outcomes[Outcome.NO_JOB] == counters.jobs[0].frames == 11
    assert counters.jobs[1].frames == 4
    assert counters.passes.passes == 7
    assert counters.passes.contributions == 16
    assert counters.banks[1].completed == 4
    assert counters.banks[7].overfull == 6
    assert counters.named()["unrouted"] == 7
    assert counters.named()["marked"] == 8
    assert counters.releases[:4] == (0, 0, 9, 0)
    assert show(served).as_json()["jobs"][0]["releases_by_worker"] == [0, 0, 9]


def test_entries_of_each_table(served):
    for name in ("worker", "station", "source", "fanout", "result", "rewrite", "groups"):
        assert show_entries(served, name)
    assert len(show_entries(served, "fanout", 3)) == 3


def test_a_switch_without_a_program(client):
    with pytest.raises(errors.PipelineMissingError, match="install a plan first"):
        show(client)


def test_a_switch_with_a_foreign_program(client, program):
    client.set_pipeline(replace(program, p4info='pkg_info { arch: "v1model" }'), 1)
    with pytest.raises(errors.OtherProgramError):
        show(client)


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
        assert (one.members, one.above) == (other.members, other.above)
        assert one.manifest == other.manifest
        assert (one.switch.entry_slot == other.switch.entry_slot).all()


def test_a_plan_for_others_is_refused(plan):
    with pytest.raises(errors.PlanRefusedError, match="is for 4 workers; the network has 3"):
        parts_for(plan, described_star(3))


@pytest.mark.parametrize("by_file", [False, True])
def test_install_show_and_clear_from_the_command_line(by_file, plan, tmp_path, fake):
    file = tmp_path / "network.toml"
    file.write_text(network_text(described_star(4, grpc=fake.address)))
    at = ("--network", file) if by_file else ("--address", fake.address)
    told = run("install", plan, *at)
    assert told.exit_code == 0, told.output
    assert "P4 program loaded" in told.stdout
    assert "Session 1." in told.stdout
    report = json.loads(run("install", plan, *at, "--json").stdout)
    assert report["session"] == 1
    assert report["switches"][0]["counts"] == {"inserted": 0, "modified": 0, "deleted": 0}
    assert run("show", *at).exit_code == 0
    (shown,) = json.loads(run("show", *at, "--json").stdout)
    assert shown["address"] == fake.address
    assert shown["tables"]["station"]["entries"] == 5
    assert "station" in run("show", *at, "--entries", "station").stdout
    assert run("clear", *at).exit_code == 0
    assert not fake.contents.entries
    both = run("show", "--network", file, "--address", fake.address)
    assert both.exit_code == 2
    assert "leave out --address" in " ".join(both.output.split())
