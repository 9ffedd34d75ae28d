# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Bad input and a full disk get one sentence and exit code 2, and leave nothing behind.

Exit code 1 says that a sum is wrong, so no command may end with a traceback.
"""

import getpass
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from switchgnn.host.wire.native import native_frames
from switchgnn.p4src import load_program
from switchgnn.softswitch.native.engine import compile_ahead
from tests.end_to_end.conftest import LEAF_SPINE, LOOPBACK, needs_training
from tests.support.commands import switchgnn
from tests.support.kept_logs import take_kept_logs
from tests.support.markers import COMBINATIONS, needs_disks, some_of, words_of
from tests.support.small_disk import LEFT

RUN = ("run", *LOOPBACK, "--graph", "karate")
TRAIN = ("train", *LOOPBACK)


def refused(*arguments):
    """Run, expect exit code 2 and one sentence, and return what is printed in one line."""
    with tempfile.TemporaryDirectory() as scratch:
        result = switchgnn(*arguments, scratch=scratch)
        # Logs of started processes stay: see docs/limitations.md.
        take_kept_logs(scratch)
        left = {path.name for path in Path(scratch).iterdir()}
    assert left <= CACHES
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    assert len(re.findall("^(?:│ )?Error", result.stderr, re.MULTILINE)) <= 1
    return " ".join(result.stderr.split())


def test_a_missing_graph_file():
    assert "nowhere.csv" in refused("run", *LOOPBACK, "--graph", "nowhere.csv")


@pytest.mark.parametrize(("value", "words"), [(np.nan, "finite"), (3e38, "overflows float32")])
def test_features_that_cannot_be_summed(tmp_path, value, words):
    path = tmp_path / "graph.npz"
    graph = {"indptr": np.array([0, 2, 4, 6]), "indices": np.array([1, 2, 0, 2, 0, 1])}
    np.savez(path, **graph, features=np.full((3, 2), value, dtype=np.float32))
    assert words in refused("run", *LOOPBACK, "--graph", path, "--workers", 3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*RUN, "--workers", 40), "34"),
        ((*RUN, "--background", 1), "take --fabric mininet"),
        ((*RUN, *LEAF_SPINE, "--faults", "l2s0.loss=0.1"), "There is no link l2s0 for faults"),
        ((*RUN, "--leaves", 2), "add --topology leaf-spine"),
        (("soak", "--leaves", 2), "add --topology leaf-spine"),
        ((*RUN, "--metrics", 65535), "Error: Metrics"),
        ((*RUN, "--mtu", "jumbo"), "MTU"),
        (("controller", "install", "nowhere", "--address", "127.0.0.1:1"), "nowhere"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_done_is_said(arguments, words):
    assert words in refused(*arguments)


def test_a_port_already_taken():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        message = refused(*RUN, "--grpc-port", port)
    assert f"Port {port} on 127.0.0.1 cannot be used" in message


def test_a_folder_that_is_no_plan_is_not_overwritten(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    refused("plan", "karate", "--workers", 2, "--out", tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


# PyTorch's cache, shared by all programs of a user.
CACHES = {f"torchinductor_{getpass.getuser()}"}
KARATE = ("--graph", "karate", "--workers", 2)
# The options of a run, and the disk that is full before it plans, and when features are written.
MOMENTS = {
    "planning": ("size=4k", ()),
    "installing": ("size=1m", ("--features", 20_000)),
}


@pytest.fixture(scope="module")
def native_code():
    """Compile in advance: the disk has no room for a compiler."""
    compile_ahead(load_program().json)
    native_frames()


@needs_disks
@pytest.mark.usefixtures("native_code")
class TestAFullDisk:
    TRAIN = (*TRAIN, "--data", "karate", "--workers", 2, "--epochs", 2, "--dropout", 0)

    def on_a_disk(self, limit, scratch, *arguments):
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

    def refused(self, limit, scratch, *arguments):
        """Check that one sentence names the folder and the remedy."""
        code, errors, remaining = self.on_a_disk(limit, scratch, *arguments)
        assert code == 2
        [error] = errors
        assert re.search(rf"{scratch}| made:", error)
        lacking = r"(No space left on device|only a part of it .*); make room there, or"
        assert re.search(lacking, error)
        assert not remaining
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
