"""A test that leaves something behind fails, and it is gone.

The tests of tests that do so are run by a pytest of their own.
"""

import os
import re
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from tests.support.processes import is_alive, run_program

pytestmark = pytest.mark.whole

HEAD = """
import os, signal, subprocess, sys, tempfile, time
from pathlib import Path
import pytest
from tests.support import leftovers

leftovers._MOMENT = 0.05

def note(**what):
    with open("noted", "a") as file:
        file.writelines(f"{name} {value}\\n" for name, value in what.items())
"""


class Outcome:
    """What a pytest of its own has said, and what its tests have noted."""

    def __init__(self, text, noted):
        self.text = text
        self.noted = noted

    def left(self):
        """What each test is said to have left."""
        found = re.findall(r"^\S+::(\w+) left behind, .* now: (.*)\.$", self.text, re.MULTILINE)
        assert len(dict(found)) == len(found)
        return dict(found)

    def counts(self):
        return {
            word: int(number)
            for number, word in re.findall(r"(\d+) (passed|failed|error)", self.text)
        }


@pytest.fixture
def outcome_of(tmp_path):
    """Call it with tests; they run with what looks for leftovers, and without all else."""

    def run(tests, *options):
        (tmp_path / "test_it.py").write_text(HEAD + textwrap.dedent(tests))
        (tmp_path / "noted").touch()
        plugins = ("-p", "tests.support.leftovers", "-p", "xdist", "-p", "no:cacheprovider")
        done = run_program(
            [sys.executable, "-m", "pytest", "-q", *plugins, *options, "test_it.py"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(Path.cwd()),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            },
        )
        noted = dict(line.split() for line in (tmp_path / "noted").read_text().splitlines())
        return Outcome(done.stdout + done.stderr, noted)

    return run


def test_processes_and_files_are_named_and_gone(outcome_of):
    outcome = outcome_of(
        """
        def test_nothing():
            subprocess.run(["true"], check=True)
            with tempfile.TemporaryDirectory():
                pass

        def test_child():
            note(child=subprocess.Popen(["sleep", "1001"]).pid)

        def test_clean():
            note(folder=tempfile.gettempdir())

        def test_orphan():
            deaf = "trap '' TERM; sleep 1002; true"
            subprocess.run(f'setsid sh -c "{deaf}" & echo orphan $! >> noted', shell=True)

        def test_failing():
            note(failing=subprocess.Popen(["sleep", "1003"]).pid)
            assert False

        def test_folder_and_file():
            (Path(tempfile.mkdtemp(prefix="switchgnn-")) / "switch.sock").touch()
            tempfile.mkstemp(suffix=".log")

        def test_clean_again(tmp_path):
            (tmp_path / "it-is-pytests").touch()
        """
    )
    left = outcome.left()
    assert set(left) == {"test_child", "test_orphan", "test_failing", "test_folder_and_file"}
    assert re.fullmatch(rf"the process {outcome.noted['child']} \(sleep 1001\)", left["test_child"])
    assert "sleep 1002" in left["test_orphan"]
    assert "sleep 1003" in left["test_failing"]
    assert re.search(r"the folder \S+/switchgnn-\w+", left["test_folder_and_file"])
    assert re.search(r"the file \S+\.log", left["test_folder_and_file"])
    assert outcome.counts() == {"passed": 6, "failed": 1, "error": 4}
    assert not any(is_alive(outcome.noted[name]) for name in ("child", "orphan", "failing"))
    folder = Path(outcome.noted["folder"])
    assert not folder.exists()
    # Sockets are made in folders that are made in it, and the paths of sockets are short.
    assert len(str(folder)) - len(tempfile.gettempdir()) <= len("/sg-12345678/gw0")
