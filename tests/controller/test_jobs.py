"""Several jobs on one switch: none touches what another one has, and sessions grow over all."""

import json
from dataclasses import replace

import numpy as np
import pytest

from switchgnn import controller
from switchgnn.base.network import leaf_spine_networks, network_on, star_network
from switchgnn.commands import controller as commands
from switchgnn.controller.base.errors import (
    JobRunningError,
    PlanRefusedError,
    UnknownJobError,
    VerificationError,
    WriteRefusedError,
)
from switchgnn.controller.base.place import ALONE, Place
from switchgnn.controller.controls.job import Jobs
from switchgnn.controller.controls.outcome import OUTCOME_CELLS
from switchgnn.controller.controls.session import Session
from switchgnn.controller.install import desired_state
from switchgnn.controller.jobs import remove_job
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import default_update
from switchgnn.controller.target import served_jobs
from switchgnn.planner import build_plan, load_graph
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine
from tests.controller.plans import install, make_plan, run, same, serve_strawman, write_ring

A_PLAN = make_plan(1, workers=2)
A_OTHER = make_plan(2, workers=2, sources=6, blocks=3, results=9)
B_PLAN = make_plan(3, workers=3, sources=5)
A_PORTS, B_PORTS = (1, 2), (7, 3, 5)


@pytest.fixture
def put(client, program):

    def put(job, plan, ports, **options):
        return install(plan, [client], network_on(ports), job, program=program, **options)

    return put


def snapshot(fake):
    both = {**fake.contents.entries, **{("group", n): g for n, g in fake.contents.groups.items()}}
    return {key: message.SerializeToString() for key, message in both.items()}


@pytest.fixture
def beside(put, fake, monkeypatch):
    """B's bytes; none may change for a moment, whatever happens to A."""
    put("b", B_PLAN, B_PORTS)
    had, changed = snapshot(fake), set()
    original = fake._apply

    def spy(update, context):
        result = original(update, context)
        now = snapshot(fake)
        changed.update(key for key in had if now.get(key) != had[key])
        return result

    monkeypatch.setattr(fake, "_apply", spy)
    yield had
    assert changed == set()


def test_a_job_comes_and_goes_beside_another(beside, put, client, fake):
    put("a", A_PLAN, A_PORTS)
    alone = len(snapshot(fake)) - len(beside)
    assert alone == 2 + 3 + 2 + 4 + 5 + 16 + 5 + (2 + 8) + 2 + (1 + 2 * 8)
    put("a", A_OTHER, A_PORTS)
    put("a", A_PLAN, (4, 9))
    remove_job([client], "a")
    assert snapshot(fake) == beside
    put("a", A_PLAN, A_PORTS)


@pytest.mark.parametrize("fail_at", [1, 2, 30, 60, 66])
def test_a_refused_install_touches_no_other_job(beside, put, fake, fail_at):
    fake.arm(fail_at=fail_at)
    with pytest.raises(WriteRefusedError):
        put("a", A_PLAN, A_PORTS)
    assert snapshot(fake) == beside


@pytest.mark.parametrize("fault", [{"fail_at": 40}, {"lose_at": 40}])
def test_a_failed_replacement_restores_the_job_alone(beside, put, fake, fault):
    put("a", A_PLAN, A_PORTS)
    both = snapshot(fake)
    fake.arm(**fault)
    with pytest.raises((WriteRefusedError, VerificationError)):
        put("a", A_OTHER, A_PORTS)
    assert snapshot(fake) == both


def test_what_a_dead_controller_left_is_removed_with_the_next_install(
    beside, put, client, fake, layout
):
    """Its entry of table job is lost: nothing says whose the others are."""
    put("a", A_PLAN, A_PORTS)
    whole = snapshot(fake)
    for name in ("job", "worker"):
        for key in [key for key in fake.contents.entries if key[0] == layout.table(name).id]:
            if key not in beside:
                del fake.contents.entries[key]
    put("a", A_PLAN, A_PORTS)
    assert snapshot(fake).keys() == whole.keys()
    remove_job([client], "a")
    assert snapshot(fake) == beside


def star_leaf_and_spine(program):
    """Switches with all kinds of entries, and what is around them."""
    options = {"workers": 4, "slots": 16, "program": program.digest}
    star = build_plan(load_graph("karate"), send="cover", **options)
    whole, around = build_plan(load_graph("karate"), rows=2, **options), leaf_spine_networks(*ABOVE)
    parts = split_for_leaf_spine(whole, even_leaf_spine(4, 2, 2)).switches
    leaf, _, spine, _ = [controller.leaf_spine_switch_plan(whole.manifest, part) for part in parts]
    return [
        (controller.SwitchPlan(star.manifest, star.switch), star_network(4)),
        (leaf, around.leaves[0]),
        (spine, around.spines[0]),
    ]


ABOVE = (0, 0, 1, 1), 2


def elsewhere(network):

    def moved(neighbours):
        return tuple(replace(each, port=each.port + 50) for each in neighbours)

    return replace(network, neighbours=moved(network.neighbours), beyond=moved(network.beyond))


@pytest.mark.parametrize("kind", range(3), ids=["star", "leaf", "spine"])
def test_entries_move_with_the_place_of_a_job_and_belong_to_it(kind, program, layout):
    plan, network = star_leaf_and_spine(program)[kind]
    last, ports = plan.manifest.blocks, tuple(plan.ports(network))
    first = Place(ports=ports, last_block=last)
    begin = 2 * last + 7
    second = replace(first, job=3, first_block=begin, ports=tuple(port + 50 for port in ports))
    one = desired_state(plan, layout, network, 10, place=first)
    other = desired_state(plan, layout, elsewhere(network), 10, place=second)
    for name, rows in other.rows.items():
        keys, usual = rows.key_columns(), one.rows[name].key_columns()
        assert len(rows) == len(one.rows[name]), name
        if "block_id" in keys:
            assert np.array_equal(keys["block_id"], np.add(usual["block_id"], begin)), name
        if "job" in keys:
            assert set(map(int, keys["job"])) <= {3}, name
    both = one.beside(other)
    assert same(layout, both.only([first]), one)
    assert same(layout, both.only([second]), other)
    assert same(layout, both.only([second, first]), both)


def test_sessions_grow_over_all_jobs(put, client):
    assert put("a", A_PLAN, A_PORTS).session == 1
    assert put("b", B_PLAN, B_PORTS).session == 2
    assert not put("a", A_PLAN, A_PORTS).changed
    remove_job([client], "b")
    assert put("b", B_PLAN, B_PORTS).session == 3
    remove_job([client], "a")
    remove_job([client], "b")
    assert put("a", A_OTHER, A_PORTS).session == 4
    assert [entry.session for _, entry in served_jobs(client)] == [4]


def test_a_job_that_moves_takes_a_new_session(put, client):
    """Where it moves to, registers hold the tags of a job with a higher session than its own."""
    put("b", B_PLAN, B_PORTS)
    put("a", A_PLAN, A_PORTS)
    put("b", B_PLAN, B_PORTS, new_session=True)
    remove_job([client], "b")
    assert put("a", A_PLAN, (4, 6)).session == 4
    ((place, _),) = served_jobs(client)
    assert (place.first_slot, place.ports) == (0, (4, 6))


def test_a_switch_joins_a_session_that_is_newer_than_all_it_has_had(fake, other_fake, program):
    for new_session in (False, True) * 2:
        options = {"program": program, "new_session": new_session}
        install(B_PLAN, [other_fake.address], network_on(B_PORTS), "b", **options)
    around = network_on(A_PORTS)
    assert install(A_PLAN, [fake.address], around, "a", program=program).session == 1
    both = [fake.address, other_fake.address]
    assert install(A_PLAN, both, around, "a", program=program).session == 4


def test_sessions_that_are_used_up_need_an_empty_switch(beside, put, client, fake, layout):
    put("a", A_PLAN, A_PORTS)
    newest = Jobs(layout).encode_newest(Session(layout).max_session)
    client.write([default_update(layout.table("job"), newest)])
    had, pushes = snapshot(fake), fake.pushes
    with pytest.raises(PlanRefusedError, match=r"given out all 65,535 .* other jobs first \(b\)"):
        put("a", A_OTHER, A_PORTS)
    assert (snapshot(fake), fake.pushes) == (had, pushes)


def test_tables_have_room_for_all_jobs_together(put, client, fake, layout, monkeypatch):
    room = len(A_PLAN.switch.source_vertex) + len(B_PLAN.switch.source_vertex)

    def put_b(size):
        table = replace(layout.tables["source"], size=size)
        smaller = replace(layout, tables={**layout.tables, "source": table})
        monkeypatch.setattr(Layout, "from_text", lambda _: smaller)
        put("b", B_PLAN, B_PORTS)

    put_b(room)
    put("a", A_PLAN, A_PORTS)
    remove_job([client], "a")
    put_b(room - 1)
    had = snapshot(fake)
    words = f"have {room} entries for table source, .*{room - 1}"
    with pytest.raises(PlanRefusedError, match=words):
        put("a", A_PLAN, A_PORTS)
    assert snapshot(fake) == had


def test_a_program_that_serves_other_jobs_is_not_replaced(put, client, fake):
    serve_strawman(client, replace(ALONE, name="theirs"))
    had = snapshot(fake)
    with pytest.raises(PlanRefusedError, match=r"another program, .* remove them first \(theirs\)"):
        put("a", A_PLAN, A_PORTS)
    assert (snapshot(fake), fake.pushes) == (had, 1)
    assert put("theirs", A_PLAN, A_PORTS).switches[0].pipeline_pushed


def test_an_unknown_job(put, client, fake, other_fake, program):
    put("a", A_PLAN, A_PORTS)
    had = snapshot(fake)
    with pytest.raises(UnknownJobError, match=f"Switch {client.address} has no job b: it has a"):
        remove_job([client], "b")
    install(B_PLAN, [other_fake.address], network_on(B_PORTS), "b", program=program)
    with (
        controller.P4RuntimeClient(other_fake.address) as other,
        pytest.raises(UnknownJobError, match=f"Switch {other.address} has no job a: it has b"),
    ):
        remove_job([client, other], "a")
    assert snapshot(fake) == had


@pytest.mark.parametrize(
    ("outcome", "job", "runs"),
    [
        (controller.Outcome.AGGREGATED, 1, True),
        (controller.Outcome.WRONG_SESSION, 1, True),
        (controller.Outcome.FORWARDED, 1, True),
        (controller.Outcome.FLOODED, 1, False),
        (controller.Outcome.AGGREGATED, 2, False),
        (controller.Outcome.NO_JOB, 0, False),
    ],
)
def test_a_job_runs_if_its_workers_have_sent(put, client, fake, outcome, job, runs):
    put("a", A_PLAN, A_PORTS)
    put("b", B_PLAN, B_PORTS)
    had, before = snapshot(fake), controller.read_counters(client)
    fake.contents.counters = {("outcome", job * OUTCOME_CELLS + outcome): 17}
    if not runs:
        remove_job([client], "a", [before])
        return
    with pytest.raises(JobRunningError, match=r"Job a of .* runs: .* sent 17 frames\. .*--force"):
        remove_job([client], "a", [before])
    assert snapshot(fake) == had


def test_jobs_from_the_command_line(fake, tmp_path, program, monkeypatch):
    monkeypatch.setattr(commands, "_WATCHED_SECONDS", 0.0)
    write_ring(tmp_path / "plan", program)
    at = ("--address", fake.address)
    for name, ports in (("a", "4,2"), ("b", "7-8")):
        done = run("install", tmp_path / "plan", *at, "--job", name, "--ports", ports)
        assert done.exit_code == 0, done.output
    (listed,) = json.loads(run("jobs", *at, "--json").stdout)
    a, b = listed["jobs"]
    assert (a["job"], a["ports"], a["workers"], a["session"]) == ("a", [2, 4], 2, 1)
    assert (b["job"], b["ports"], b["workers"], b["session"]) == ("b", [7, 8], 2, 2)
    assert a["slots"] == b["slots"] > 0
    assert b["since"] >= a["since"] > 1_600_000_000
    assert "use" not in a
    (shown,) = json.loads(run("show", *at, "--entries", "worker", "--json").stdout)
    ports = {(each["port"], each["worker"]) for each in shown["entries"]}
    assert ports == {(4, 0), (2, 1), (7, 0), (8, 1)}
    said = run("remove", "a", *at)
    assert said.exit_code == 0, said.output
    assert f"ports 2,4 and {a['slots']} slots in each bank are free" in said.stdout
    assert "1 job" in run("jobs", *at).stdout
    assert isinstance(run("remove", "a", *at, "--force").exception, UnknownJobError)


def test_the_share_of_the_loop(fake, client, put, monkeypatch):
    put("a", A_PLAN, A_PORTS)
    put("b", B_PLAN, B_PORTS)
    cells = {("outcome", OUTCOME_CELLS): 5, ("passes", 16 + 1): 30, ("passes", 32 + 2): 10}
    grown = {key: value * 2 for key, value in cells.items()} | {("passes", 16 + 1): 90}
    fake.contents.counters = cells
    waited = commands.threading.Event.wait

    def wait(event, timeout=None):
        if timeout == 0.25:
            fake.contents.counters = grown
        return waited(event, timeout)

    monkeypatch.setattr(commands.threading.Event, "wait", wait)
    done = run("jobs", "--address", fake.address, "--seconds", 0.25, "--json")
    (listed,) = json.loads(done.stdout)
    uses = {job["job"]: job["use"] for job in listed["jobs"]}
    assert uses["a"] == {"frames": 5, "passes": 60, "share": 6 / 7}
    assert uses["b"] == {"frames": 0, "passes": 10, "share": 1 / 7}
    assert [job["passes"] for job in listed["jobs"]] == [90, 20]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ports", "1-3"), "names 3 ports, but the plan has 2 workers"),
        (("--ports", "one"), "names no ports"),
        (("--quota", "1"), "but its quota is 1"),
    ],
)
def test_bad_options_change_nothing(fake, tmp_path, program, words, said):
    write_ring(tmp_path / "plan", program)
    done = run("install", tmp_path / "plan", "--address", fake.address, *words)
    assert done.exit_code != 0
    assert said in " ".join(f"{done.output} {done.exception}".split())
    assert not fake.updates
