"""What has a result is not run again; what fails does not stop the others."""

import sys

import pytest

from switchgnn.lab.experiments.figure import ExperimentError
from switchgnn.lab.experiments.point import TrainingPoint
from switchgnn.lab.experiments.runner import Store, run_points
from tests.experiments.fake_points import VERSIONS, FakeProgram, point, result
from tests.support.processes import is_alive, process_of
from tests.support.waiting import wait_until

PYTHON = (sys.executable, "-S", "-c")
POINTS = [point(workers=number) for number in (2, 3, 4)]


def run(points, folder, words, versions=None, jobs=2, tell=lambda _line: None):
    store = Store(folder / "out", versions or VERSIONS)
    with store.opened():
        return run_points(points, store, jobs, tell, words), store


def test_every_point_is_run_once_and_results_are_not_made_again(tmp_path):
    program = FakeProgram(tmp_path)
    outcome, store = run([*POINTS[:2], *POINTS[:2]], tmp_path, program.words)
    assert (outcome.run, outcome.kept, outcome.failed) == (2, 0, {})
    assert [store.find(each) for each in POINTS[:2]] == [result()] * 2
    outcome, _ = run(POINTS, tmp_path, program.words)
    assert (outcome.run, outcome.kept) == (1, 2)
    assert sum(program.groups) == 3


def test_another_version_is_run_again(tmp_path):
    program = FakeProgram(tmp_path)
    run(POINTS, tmp_path, program.words)
    outcome, store = run(POINTS, tmp_path, program.words, versions={"code": "2"})
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
    program = FakeProgram(tmp_path)
    run(POINTS, tmp_path, program.words)
    file = tmp_path / "out" / "points" / f"{POINTS[0].name}.json"
    file.write_text(file.read_text()[:-40])
    outcome, store = run(POINTS, tmp_path, program.words)
    assert outcome.run == 1
    assert store.find(POINTS[0]) == result()


def test_a_failure_is_a_sentence_and_the_others_go_on(tmp_path):
    lines = []
    program = FakeProgram(tmp_path, fails={POINTS[0]: "no slots: give more."})
    outcome, store = run(POINTS, tmp_path, program.words, jobs=1, tell=lines.append)
    assert outcome.failed == {POINTS[0]: "no slots: give more."}
    assert store.find(POINTS[0]) is None
    assert store.find(POINTS[2]) == result()
    assert "failed: no slots: give more." in lines[0]
    assert run(POINTS, tmp_path, program.words)[0].run == 1


def test_points_with_the_same_plan_share_a_process(tmp_path):
    """Within a switch a plan depends on rates, too."""
    rates = [point(recirculation_rate=rate) for rate in (1e8, 1e9, None)]
    within = [point(switch="tofino2", **each) for each in ({}, {"delay": 1.0}, {"bandwidth": 1e4})]
    others = [point(order="random"), *(point(system=name) for name in ("bns-gcn", "g3", "auto"))]
    program = FakeProgram(tmp_path)
    run([*rates, *within, *others], tmp_path, program.words, jobs=4)
    assert program.groups == [1] * 4 + [1, 2] + [3]


def test_trainings_run_alone_after_simulations_and_share_a_process_if_only_transports_differ(
    tmp_path,
):
    """Simulations work before each process appends its points, and a full stop at its end."""
    log = tmp_path / "log"
    script = (
        f"import sys; points = sys.stdin.read().splitlines(); file = open({str(log)!r}, 'a');"
        "'epochs' in points[0] or sum(range(5_000_000));"
        "print('epochs' in points[0], len(points), end=' ', file=file, flush=True);"
        "[print('{\"result\": {}}') for _ in points]; print('.', file=file, flush=True)"
    )
    trainings = [
        TrainingPoint("digits", workers, system)
        for workers in (2, 4)
        for system in ("switch", "host")
    ]
    versions = {"code": "1", "training": "2"}
    run([*trainings, *POINTS], tmp_path, [*PYTHON, script], versions, jobs=4)
    *simulated, first, second = log.read_text().splitlines()
    assert "".join(simulated).count("False 1") == len(POINTS)
    assert (first, second) == ("True 2 .", "True 2 .")
    # The code of simulations may change without making trainings again.
    for versions, kept in (({"code": "9", "training": "2"}, True), ({"training": "9"}, False)):
        assert (Store(tmp_path / "out", versions).find(trainings[0]) is not None) is kept


def test_within_a_switch_a_plan_depends_on_its_tables():
    limit = {"table_memory": 1_000}
    assert point(switch="tofino2").plan != point(switch="tofino2", **limit).plan
    assert point().plan == point(**limit).plan


def test_one_run_at_a_time(tmp_path):
    first, second = (Store(tmp_path, VERSIONS) for _ in range(2))
    with first.opened(), pytest.raises(ExperimentError, match="Another run"), second.opened():
        pass
    with second.opened():
        pass


def test_an_exception_ends_what_was_started(tmp_path):
    """A process and its child, which do not end by themselves, after a point is done."""
    pids = tmp_path / "pids"
    script = (
        "import os, subprocess, sys; child = subprocess.Popen(['sleep', '1000']);"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}.');"
        "print('{\"result\": {}}', flush=True); child.wait()"
    )
    points = [point(recirculation_rate=rate) for rate in (1e8, 1e9)]
    store = Store(tmp_path / "out", VERSIONS)

    def interrupt(_line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(points, tmp_path, [*PYTHON, script], jobs=1, tell=interrupt)
    process, child = map(int, pids.read_text().rstrip(".").split())
    assert process_of(process) is None
    # Nobody of ours waits for the child: it is gone as soon as init has seen that.
    wait_until(lambda: not is_alive(child))
    assert [store.find(each) is not None for each in points] == [True, False]
    assert not store.work.exists()


def test_points_of_a_process_that_dies_have_its_last_words(tmp_path):
    script = "import sys; print('{\"result\": {}}', flush=True); sys.exit('Out of memory.')"
    points = [point(recirculation_rate=rate) for rate in (1e8, 1e9)]
    done, _ = run(points, tmp_path, [*PYTHON, script], jobs=1)
    assert done.failed == {points[1]: "Out of memory."}
