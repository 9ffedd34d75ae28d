"""What has a result is not run again; what fails does not stop the others."""

import sys
from pathlib import Path

import pytest

from switchgnn.lab.experiments.figure import ExperimentError
from switchgnn.lab.experiments.runner import Store, run_points
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.presets import PRESETS, PlanContext, preset_strategies
from tests.experiments.fake_points import VERSIONS, FakeCommand, point, result
from tests.support.processes import is_alive, process_of
from tests.support.waiting import wait_until

POINTS = [point(workers=number) for number in (2, 3, 4)]


def quiet(_line):
    pass


def run(points, folder, command, versions=None, jobs=2, tell=quiet):
    store = Store(folder / "out", versions or VERSIONS)
    with store.opened():
        return run_points(points, store, jobs, tell, command), store


def test_every_point_is_run_once(tmp_path):
    command = FakeCommand(tmp_path)
    outcome, store = run([*POINTS, *POINTS], tmp_path, command)
    assert (outcome.run, outcome.kept, outcome.failed) == (3, 0, {})
    assert len(command.runs) == 3
    assert [store.find(each) for each in POINTS] == [result()] * 3


def test_results_are_not_made_again(tmp_path):
    command = FakeCommand(tmp_path)
    run(POINTS[:2], tmp_path, command)
    outcome, _ = run(POINTS, tmp_path, command)
    assert (outcome.run, outcome.kept) == (1, 2)
    assert len(command.runs) == 3


def test_another_version_is_run_again(tmp_path):
    command = FakeCommand(tmp_path)
    run(POINTS, tmp_path, command)
    outcome, store = run(POINTS, tmp_path, command, versions={"code": "2"})
    assert outcome.run == 3
    assert store.find(POINTS[0]) == result()
    assert Store(tmp_path / "out", VERSIONS).find(POINTS[0]) is None


@pytest.mark.parametrize(
    "change", [{"graph": "digits"}, {"features": 33}, {"switch": "tofino2"}, {"mtu": "fragment"}]
)
def test_another_parameter_is_another_result(tmp_path, change):
    store, one, other = Store(tmp_path, VERSIONS), point(), point(**change)
    with store.opened():
        store.keep(one, {"bytes": 1})
        assert store.find(other) is None
        store.keep(other, {"bytes": 2})
    assert (store.find(one), store.find(other)) == ({"bytes": 1}, {"bytes": 2})


def test_a_broken_result_is_made_again(tmp_path):
    command = FakeCommand(tmp_path)
    run(POINTS, tmp_path, command)
    file = tmp_path / "out" / "points" / f"{POINTS[0].name}.json"
    file.write_text(file.read_text()[:-40])
    outcome, store = run(POINTS, tmp_path, command)
    assert outcome.run == 1
    assert store.find(POINTS[0]) == result()


def test_a_failure_is_a_sentence_and_the_others_go_on(tmp_path):
    lines = []
    command = FakeCommand(tmp_path, fails={POINTS[0]: "no slots: give more."})
    outcome, store = run(POINTS, tmp_path, command, jobs=1, tell=lines.append)
    assert outcome.failed == {POINTS[0]: "no slots: give more."}
    assert store.find(POINTS[0]) is None
    assert store.find(POINTS[2]) == result()
    assert "failed: no slots: give more." in lines[0]
    # What failed is tried again.
    assert run(POINTS, tmp_path, command)[0].run == 1


def test_points_share_a_plan(tmp_path):
    rates = [point(recirculation_rate=rate) for rate in (1e8, 1e9, None)]
    others = [point(order="random")]
    command = FakeCommand(tmp_path)
    run([*rates, *others], tmp_path, command, jobs=4)
    assert sorted(command.planned) == [False, False, True, True]


def test_within_a_switch_a_plan_depends_on_rates(tmp_path):
    rates = [point(recirculation_rate=rate, switch="tofino2") for rate in (1e8, 1e9)]
    others = [point(bandwidth=1e4, switch="tofino2"), point(switch="tofino2", delay=1.0)]
    command = FakeCommand(tmp_path)
    run([*rates, *others, point(switch="tofino2")], tmp_path, command, jobs=4)
    # Only of the last two the delay is the difference.
    assert sorted(command.planned) == [False] * 4 + [True]


@pytest.mark.parametrize("limit", [{"table_memory": 1_000}, {"leaves": 2, "spines": 1}])
def test_within_a_switch_a_plan_depends_on_its_tables(limit):
    assert point(switch="tofino2").plan_folder != point(switch="tofino2", **limit).plan_folder
    assert point().plan_folder == point(**limit).plan_folder


def test_points_share_a_partition(tmp_path):
    """Who has the same vertices waits for the first one, though the plans are others."""
    same = [point(memory=size) for size in (1_000, 2_000)] + [
        point(system=system) for system in ("bns-gcn", "strawman", "best")
    ]
    others = [point(system="g3"), point(seed=1), point(graph="digits")]
    command = FakeCommand(tmp_path)
    run([*same, *others], tmp_path, command, jobs=8)
    assert command.parted.count(False) == 1 + len(others)
    assert command.planned == [False] * 8


@pytest.mark.parametrize("preset", PRESETS)
def test_a_point_has_the_partition_of_its_preset(preset):
    """If a preset chose another one, that of the points would be wrong."""
    choice = preset_strategies(preset, load_graph("karate"), PlanContext(4, 16))
    assert point(system=preset).partition == choice.partition


def test_a_plan_goes_with_the_last_point_that_needs_it(tmp_path):
    work, plans = tmp_path / "out" / "work", []
    rates = [point(recirculation_rate=rate) for rate in (1e8, 1e9, None)]
    run(
        [*rates, point(order="random")],
        tmp_path,
        FakeCommand(tmp_path),
        jobs=1,
        tell=lambda _: plans.append(
            [sum(map(kind, work.iterdir())) for kind in (Path.is_dir, Path.is_file)]
        ),
    )
    # The partition is that of the last one as well.
    assert plans == [[1, 1], [1, 1], [0, 1], [0, 0]]


def test_one_run_at_a_time(tmp_path):
    first, second = (Store(tmp_path, VERSIONS) for _ in range(2))
    with first.opened(), pytest.raises(ExperimentError, match="Another run"), second.opened():
        pass
    with second.opened():
        pass


def test_an_exception_ends_what_was_started(tmp_path):
    """A process and its child, which do not end by themselves, while another point is done."""
    pids = tmp_path / "pids"
    program = (
        "import os, subprocess, sys; child = subprocess.Popen(['sleep', '1000']);"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}.'); child.wait()"
    )

    def command(one, plan):
        if one == POINTS[0]:
            return [sys.executable, "-S", "-c", program]
        return FakeCommand(tmp_path)(one, plan)

    def interrupt(_line):
        wait_until(lambda: pids.exists() and pids.read_text().endswith("."))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(POINTS, tmp_path, command, tell=interrupt)
    process, child = map(int, pids.read_text().rstrip(".").split())
    assert process_of(process) is None
    # Nobody of ours waits for the child: it is gone as soon as init has seen that.
    wait_until(lambda: not is_alive(child))
    store = Store(tmp_path / "out", VERSIONS)
    assert [store.find(each) is not None for each in POINTS].count(True) == 1
    assert not store.work.exists()
