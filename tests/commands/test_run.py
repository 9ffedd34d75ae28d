"""`--backend`: what the embedded switch runs the program as, and what reports say of it."""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from typer.testing import CliRunner

from switchgnn.base.arrays import pack_arrays
from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.native import find_compiler
from switchgnn.commands.application import app
from switchgnn.commands.doctor import examine
from switchgnn.host.wire.header import LAST_ROUND
from switchgnn.host.worker import features_of_round, result_file
from switchgnn.jobs import reference
from switchgnn.jobs.reference import Comparison
from switchgnn.planner import graph_from_edges
from switchgnn.softswitch.base.errors import SoftSwitchError
from switchgnn.softswitch.native.build import VARIABLE, Backend, backend_here
from tests.support.commands import switchgnn
from tests.support.markers import needs_compiler, some_of
from tests.support.speed import seconds_here

BACKENDS = ["python", pytest.param("native", marks=needs_compiler)]
HERE = ("--target", "embedded", "--fabric", "loopback")
SMALL = {
    "run": ("--graph", "karate", "--workers", 2, "--rounds", 1),
    "train": ("--data", "karate", "--workers", 2, "--epochs", 1),
}


@pytest.mark.whole
@pytest.mark.parametrize(
    ("command", "backend"),
    some_of(lambda command, backend: command % 2 == backend, list(SMALL), BACKENDS),
)
def test_reports_say_what_ran(command, backend):
    """The option counts more than the environment."""
    if command == "train":
        pytest.importorskip("torch_geometric")
    other = {VARIABLE: "native" if backend == "python" else "python"}
    words = (*SMALL[command], *HERE, "--backend", backend, "--json")
    done = switchgnn(command, *words, environment=other)
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["backend"] == backend
    assert report["compile_seconds"] >= 0
    assert backend == "native" or report["compile_seconds"] == 0


def test_native_code_needs_a_compiler(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = CliRunner().invoke(app, ["run", *map(str, SMALL["run"]), *HERE, "--backend", "native"])
    assert result.exit_code != 0
    said = f"{result.output} {result.exception}"
    assert "apt-get install g++, or use --backend python" in " ".join(said.split())


def test_what_is_not_asked_for_is_what_the_environment_says(monkeypatch):
    monkeypatch.setenv(VARIABLE, "python")
    assert backend_here(None) is Backend.PYTHON
    assert backend_here(Backend.NATIVE) is Backend.NATIVE
    monkeypatch.setenv(VARIABLE, "rust")
    words = r"unknown back end, 'rust'.*use one of native, python, auto"
    with pytest.raises(SoftSwitchError, match=words):
        backend_here(None)


def found(name="embedded switch"):
    (finding,) = (each for each in examine() if each.name == name)
    return finding.found


@needs_compiler
def test_doctor_says_what_auto_takes():
    assert found() == f"--backend auto takes native, compiled by {find_compiler()}"


@needs_compiler
def test_doctor_says_why_a_cache_is_not_trusted(monkeypatch, tmp_path):
    """One that everybody may write to, for temporary files too."""
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(tempfile, "tempdir", str(cache))
    assert found().startswith("--backend auto takes python: Compiled programs cannot be kept: ")
    assert f"others may write to {cache}. Set XDG_CACHE_HOME" in found()


# Each vertex of worker 0 has one in-neighbour on worker 1, and the other way around.
EDGES = [(0, 2), (1, 3), (2, 1), (3, 0)]
ASSIGNMENT = np.array([0, 0, 1, 1], dtype=np.int32)
FEATURES = np.arange(1, 13, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def comparison(tmp_path, monkeypatch):
    """One of five rounds, two of which have room at once."""
    monkeypatch.setattr(reference, "_FILE_BYTES", 2 * FEATURES.size * 8 + 1)
    source, destination = np.array(EDGES).T
    graph = graph_from_edges(source, destination, name="ring", vertices=4, directed=True)
    return Comparison(graph, ASSIGNMENT, FEATURES, rounds=5, folder=tmp_path)


MOST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize("value", [0.0, 1e-30, -1.0, 9.9e29, 1e30, -3.4e38, MOST])
def test_features_differ_between_rounds_and_stay_finite(value):
    first = np.full((2, 1), value, dtype=np.float32)
    rounds = [features_of_round(first, index) for index in (*range(9), LAST_ROUND - 1)]
    assert (rounds[0] == first).all()
    assert np.isfinite(rounds).all()
    assert len({float(each[0, 0]) for each in rounds}) == (len(rounds) if value else 1)


def largest(index):
    return float(np.abs(features_of_round(FEATURES, index)).max())


def write(comparison, number, *, add=0, stretch=1.0, headroom=None):
    """Write the file of this number of both workers.

    With headroom the scale of rounds is so many times that of the two before, where there are two.
    One sum of each round of worker 1 is off: in fixed point by `add`, as a float by a quarter.
    """
    rounds = range(2 * number, min(2 * number + 2, 5))
    for worker in range(2):
        fixed, sums, scales = [], [], []
        for index in rounds:
            features = features_of_round(FEATURES, index)
            capacity = largest(index)
            if headroom is not None and index > 1:
                capacity = headroom * max(largest(index - 1), largest(index - 2))
            scale = (2**31 - 1) / capacity
            received = np.zeros_like(features, dtype=np.int64)
            for source, destination in EDGES:
                received[destination] = np.rint(features[source].astype(np.float64) * scale)
            mine = received[worker == ASSIGNMENT]
            mine[0, 0] += add * worker
            fixed.append(mine.astype(np.int32))
            sums.append((mine / scale).astype(np.float32))
            sums[-1][0, 0] += add * worker * 0.25
            scales.append(scale * (stretch if worker else 1))
        path = result_file(comparison.output(worker), number)
        arrays = {"fixed": np.stack(fixed), "sums": np.stack(sums), "scale": np.array(scales)}
        path.write_bytes(pack_arrays(arrays))


def test_files_are_compared_and_removed_once_all_workers_have_written_them(comparison, tmp_path):
    assert comparison.rounds_per_file == 2
    for number in range(2):
        write(comparison, number)
        comparison.written(0)
        assert len(list(tmp_path.iterdir())) == 2
        comparison.written(1)
        assert not list(tmp_path.iterdir())
    write(comparison, 2)
    verdict = comparison.finish()
    assert not list(tmp_path.iterdir())
    assert verdict.wrong_sums == 0
    assert verdict.max_error <= verdict.error_bound


@pytest.mark.parametrize("wrong", range(3))
def test_wrong_sums_of_any_round_count(comparison, wrong):
    for number in range(3):
        write(comparison, number, add=number == wrong)
    verdict = comparison.finish()
    # The last file has one round.
    assert verdict.wrong_sums == (1 if wrong == 2 else 2)
    assert verdict.max_error == pytest.approx(0.25)


def test_other_scales_name_the_round(comparison):
    write(comparison, 0)
    write(comparison, 1, stretch=1.5)
    with pytest.raises(SwitchGNNError, match="Round 3: the workers used different scales"):
        comparison.finish()


@pytest.mark.parametrize(("headroom", "right"), [(4, True), (2, False), (8, False)])
def test_a_scale_that_was_foreseen_is_right(comparison, headroom, right):
    """It is for four times the larger one of the two rounds before, and no other."""
    for number in range(3):
        write(comparison, number, headroom=headroom)
    # Three of five rounds have two before them.
    assert comparison.finish().wrong_sums == (0 if right else 3 * FEATURES.size)


def peak_of_run(rounds, folder):
    """The largest resident memory of any process of a run, in MB."""
    words = [sys.executable, "-m", "switchgnn", "run", "--graph", "random:40:80:1", "--workers", 2]
    words += ["--features", 2048, "--fabric", "loopback", "--target", "embedded", "--json"]
    limit = ("timeout", seconds_here(100))
    with (folder / f"{rounds}.log").open("w+") as log:
        whole = [str(word) for word in (*limit, *words, "--rounds", rounds)]
        run = subprocess.Popen(whole, stdout=log, stderr=log)
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        assert run.returncode == 0, log.read()[-2000:]
    return usage.ru_maxrss / 1024


@pytest.mark.whole
@pytest.mark.full
@pytest.mark.skipif(find_compiler() is None, reason="needs a C++ compiler, or it takes minutes")
def test_rounds_take_no_memory(tmp_path):
    # The sums of 100 rounds are 65 MB.
    assert peak_of_run(100, tmp_path) - peak_of_run(5, tmp_path) < 30
