# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A disk that fills up, at whatever moment, gets one sentence and leaves nothing behind.

Exit code 1 says that a sum is wrong, so no command may end with a traceback.
"""

import getpass
import importlib.util
import re
import subprocess
import sys

import pytest

from switchgnn.host.wire.native import compile_for_hosts
from switchgnn.lab.simulator.compile import compiled_models, what_is_missing
from switchgnn.p4src import load_program
from switchgnn.planner.partition.ptscotch import ptscotch_missing
from switchgnn.softswitch.native.engine import compile_ahead
from tests.support.commands import switchgnn
from tests.support.markers import COMBINATIONS, full, needs_disks, some_of, words_of
from tests.support.small_disk import LEFT

pytestmark = needs_disks

KARATE = ("--graph", "karate", "--workers", 2)
LOOPBACK = ("embedded", "loopback")
# PyTorch's cache, shared by all programs of a user.
CACHES = {f"torchinductor_{getpass.getuser()}"}
# The options of a run, and the disk that is full before it plans, when features are to be written,
# and when the sums are.
MOMENTS = {
    "planning": ("size=4k", ()),
    "installing": ("size=1m", ("--features", 20_000)),
    "exchanging": ("size=1m", ("--rounds", 400)),
}
# One file more each time.
FILES = range(2, 18)
# And one page or two.
PAGES = range(4, 120, 8)


@pytest.fixture(autouse=True, scope="module")
def native_code():
    """Compile in advance: the disk has no room for a compiler."""
    compile_ahead(load_program().json)
    compile_for_hosts()


def on_a_disk(limit, scratch, *arguments):
    """Return exit code, the sentences of the error, and the remaining files."""
    result = switchgnn(*arguments, scratch=scratch, disk=limit, folder=scratch)
    assert "Traceback" not in result.stderr, result.stderr
    *lines, last = result.stderr.splitlines()
    assert last.startswith(LEFT)
    errors = [line for line in lines if line.startswith("Error: ")]
    left = set(last.removeprefix(LEFT).split()) - CACHES
    # Once what filled the disk is gone there is room for logs, which the command names.
    logs = {name for name in left if name.startswith("switchgnn-logs-")}
    assert all(any(name in line for line in lines) for name in logs)
    return result.returncode, errors, left - logs


def refused(limit, scratch, *arguments, left=frozenset()):
    """Check that one sentence names the folder and the remedy."""
    code, errors, remaining = on_a_disk(limit, scratch, *arguments)
    assert code == 2
    [error] = errors
    assert re.search(rf"{scratch}| made:| shown:", error)
    assert re.search(r"(No space left on device|only a part of it .*); make room there, or", error)
    assert remaining == left
    return error


@pytest.mark.parametrize(
    ("combination", "moment"),
    # On every switch and fabric the last moment, when all processes run.
    some_of(lambda where, when: when == 2 or where == 0, COMBINATIONS, list(MOMENTS)),
)
def test_a_run(combination, moment, tmp_path):
    limit, options = MOMENTS[moment]
    error = refused(limit, tmp_path, "run", *words_of(combination), *KARATE, *options)
    assert "TMPDIR" in error


@full
@pytest.mark.parametrize(
    "limit", [*(f"nr_inodes={n}" for n in FILES), *(f"size={n}k" for n in PAGES)]
)
def test_a_run_at_every_moment(limit, tmp_path):
    run = ("run", *words_of(LOOPBACK), *KARATE)
    code, errors, left = on_a_disk(limit, tmp_path, *run)
    assert not left
    assert (code, len(errors)) in {(2, 1), (0, 0)}
    assert all("; make room" in error for error in errors)


@pytest.mark.skipif(
    importlib.util.find_spec("torch_geometric") is None, reason="PyTorch Geometric is not installed"
)
class TestTraining:
    TRAIN = ("train", "--data", "karate", "--workers", 2, "--epochs", 2, "--dropout", 0)

    @pytest.mark.parametrize("transport", ["switch", pytest.param("local", marks=full)])
    def test_a_checkpoint(self, transport, tmp_path):
        options = ("--transport", transport, "--hidden", 20_000, "--checkpoint", "saved")
        error = refused("size=4m", tmp_path, *self.TRAIN, *words_of(LOOPBACK), *options)
        assert "Cannot write the checkpoint" in error

    @full
    def test_plots(self, tmp_path):
        options = ("--transport", "local", "--plots", "shown")
        refused("size=48k", tmp_path, *self.TRAIN, *options, left={"shown"})

    @full
    def test_events(self, tmp_path):
        options = ("--transport", "local", "--epochs", 400, "--tensorboard", "shown")
        result = switchgnn(
            *self.TRAIN, *options, scratch=tmp_path, disk="size=48k", folder=tmp_path
        )
        assert result.returncode == 2
        assert "Error: Cannot write events to shown: No space left on device;" in result.stderr

    @full
    @pytest.mark.parametrize(
        "limit", [*(f"nr_inodes={n}" for n in range(2, 26)), *(f"size={n}k" for n in PAGES)]
    )
    def test_every_moment(self, limit, tmp_path):
        options = ("--evaluate-every", 1, "--transport", "switch", "--checkpoint", "saved")
        code, errors, left = on_a_disk(limit, tmp_path, *self.TRAIN, *words_of(LOOPBACK), *options)
        assert left <= {"saved", "saved.before"}
        assert (code, len(errors)) in {(2, 1), (0, 0)}
        assert all("; make room" in error for error in errors)


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "karate", "--workers", 2, "--out", "made"),
        pytest.param(("shard", "karate", "--ranks", 2, "--out", "made"), marks=full),
    ],
)
def test_a_plan_and_shards(arguments, tmp_path):
    assert "cannot write" in refused("size=4k", tmp_path, *arguments)


@full
def test_plots_of_a_plan(tmp_path):
    plan = ("plan", "karate", "--workers", 2, "--plots", "shown")
    refused("size=48k", tmp_path, *plan, left={"shown"})


@full
@pytest.mark.skipif(bool(ptscotch_missing()), reason=ptscotch_missing() or "")
@pytest.mark.parametrize("limit", [*(f"nr_inodes={n}" for n in range(2, 12)), "size=12k"])
def test_ranks(limit, tmp_path):
    """On a full disk mpirun would wait for its own lock for ever."""
    plan = ("plan", "karate", "--workers", 2, "--partition", "ptscotch:2")
    code, errors, left = on_a_disk(limit, tmp_path, *plan)
    assert (code, len(errors)) in {(2, 1), (0, 0)}
    assert not left


@pytest.mark.skipif(bool(what_is_missing()), reason=what_is_missing() or "")
@pytest.mark.parametrize("limit", ["size=40k", pytest.param("size=8k", marks=full)])
def test_figures(limit, tmp_path):
    """Results that fit stay, and are those of a resumed run; none is truncated."""
    compiled_models()
    code, errors, left = on_a_disk(limit, tmp_path, "figures", "example", "--out", "shown")
    assert code == 2
    assert "No space left on device; make room" in errors[-1]
    assert left == {"shown"}


def test_output_that_nobody_can_keep():
    with open("/dev/full", "w") as nowhere:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "switchgnn.commands", "--version"],
            stdout=nowhere,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == (
        "Error: Cannot write what is printed: No space left on device; make room there.\n"
    )
