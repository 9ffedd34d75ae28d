"""On a full disk commands end with one sentence and exit code 2, and leave nothing behind."""

import re
import subprocess
import sys

import pytest

from switchgnn.host.wire.native import native_frames
from switchgnn.p4src import load_program
from switchgnn.softswitch.native.engine import compile_ahead
from tests.end_to_end.conftest import CACHES, LOOPBACK, needs_training
from tests.support.commands import switchgnn
from tests.support.markers import COMBINATIONS, needs_disks, some_of, words_of
from tests.support.small_disk import LEFT

KARATE = ("--graph", "karate", "--workers", 2)
# The options of a run, and the disk that is full before it plans, and when features are written.
MOMENTS = {"planning": ("size=4k", ()), "installing": ("size=1m", ("--features", 20_000))}


@pytest.fixture(scope="module")
def native_code():
    """Compile in advance: the disk has no room for a compiler."""
    compile_ahead(load_program().json)
    native_frames()


@needs_disks
@pytest.mark.usefixtures("native_code")
class TestAFullDisk:
    TRAIN = ("train", *LOOPBACK, "--data", "karate", "--workers", 2, "--epochs", 2, "--dropout", 0)

    def refused(self, limit, scratch, *arguments):
        """Check that one sentence names the folder and the remedy, and no file is left."""
        result = switchgnn(*arguments, scratch=scratch, disk=limit, folder=scratch)
        assert "Traceback" not in result.stderr, result.stderr
        *lines, last = result.stderr.splitlines()
        assert last.startswith(LEFT)
        errors = [line for line in lines if line.startswith("Error: ")]
        left = set(last.removeprefix(LEFT).split()) - CACHES
        # Once what filled the disk is gone there is room for logs, which the command names.
        logs = {name for name in left if name.startswith("switchgnn-logs-")}
        assert all(any(name in line for line in lines) for name in logs)
        assert result.returncode == 2
        [error] = errors
        assert re.search(rf"{scratch}| made:", error)
        lacking = r"(No space left on device|only a part of it .*); make room there, or"
        assert re.search(lacking, error)
        assert not left - logs
        return error

    @pytest.mark.parametrize(
        ("combination", "moment"),
        # On every switch and fabric the last moment, when all processes run.
        some_of(lambda where, when: when > 0 == where, COMBINATIONS, list(MOMENTS)),
    )
    def test_a_run(self, combination, moment, tmp_path):
        limit, options = MOMENTS[moment]
        error = self.refused(limit, tmp_path, "run", *words_of(combination), *KARATE, *options)
        assert "TMPDIR" in error

    def test_a_plan(self, tmp_path):
        plan = ("plan", "karate", "--workers", 2, "--out", "made")
        assert "Cannot write" in self.refused("size=4k", tmp_path, *plan)

    @needs_training
    def test_a_checkpoint(self, tmp_path):
        options = ("--transport", "switch", "--hidden", 20_000, "--checkpoint", "saved")
        error = self.refused("size=4m", tmp_path, *self.TRAIN, *options)
        assert "Cannot write the checkpoint" in error

    def test_output_that_nobody_can_keep(self):
        with open("/dev/full", "w") as nowhere:  # noqa: PTH123
            command = [sys.executable, "-m", "switchgnn.commands", "--version"]
            done = subprocess.run(
                command, stdout=nowhere, stderr=subprocess.PIPE, text=True, check=False
            )
        assert done.returncode == 2
        assert done.stderr == (
            "Error: Cannot write what is printed: No space left on device; make room there.\n"
        )
