# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A test that leaves something behind fails, and it is gone; nobody else's things are touched.

The tests of tests that do so are run by a pytest of their own.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from tests.support.markers import full, needs, needs_root
from tests.support.processes import descendants, is_alive
from tests.support.speed import seconds_here

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
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *plugins, *options, "test_it.py"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(Path.cwd()),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds_here(100),
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


@needs_root
@needs("ip", "iproute2")
def test_interfaces_and_networks_are_named_and_gone(outcome_of):
    names = {name: f"lo{os.getpid()}{name}" for name in "abcdn"}
    outcome = outcome_of(
        f"""
        def ip(*words, check=True):
            return subprocess.run(["ip", *words], check=check).returncode

        def test_pair():
            ip("link", "add", "{names["a"]}", "type", "veth", "peer", "name", "{names["b"]}")

        def test_network():
            ip("netns", "add", "{names["n"]}")

        def test_shell():
            command = "ip link add {names["c"]} type veth peer name {names["d"]}"
            subprocess.run(command, shell=True, check=True)

        def test_gone():
            assert ip("link", "show", "{names["a"]}", check=False)
            assert ip("link", "show", "{names["c"]}", check=False)
            assert not Path("/run/netns/{names["n"]}").exists()

        def test_own_network():
            subprocess.Popen(["unshare", "--net", "sleep", "1001"])

        def test_taken_down():
            ip("link", "add", "{names["a"]}", "type", "veth", "peer", "name", "{names["b"]}")
            ip("link", "delete", "{names["a"]}")
        """
    )
    left = outcome.left()
    assert left.pop("test_own_network").endswith("(sleep 1001, in a network namespace of its own)")
    assert left == {
        "test_pair": f"the interface {names['a']}; the interface {names['b']}",
        "test_network": f"the network namespace {names['n']}",
        "test_shell": f"the interface {names['c']}; the interface {names['d']}",
    }
    assert outcome.counts() == {"passed": 6, "error": 4}


def test_what_a_wider_fixture_makes_may_stay_until_it_ends(outcome_of):
    outcome = outcome_of(
        """
        from tests.support.leftovers import lasting

        class Switch:
            def start(self):
                self.process = subprocess.Popen(["sleep", "1004"])

            def stop(self):
                self.process.kill()
                self.process.wait()

        @pytest.fixture(scope="module")
        def switch():
            made = Switch()
            made.start()
            yield made
            made.stop()

        @pytest.fixture(scope="class")
        def careless():
            tempfile.mkdtemp(prefix="of-the-class-")
            note(careless=subprocess.Popen(["sleep", "1005"]).pid)

        class TestClass:
            def test_one(self, switch, careless):
                pass

            def test_last_of_class(self, careless):
                pass

        def test_restart(switch):
            switch.stop()
            switch.start()

        def test_another_beside_it(switch):
            note(another=subprocess.Popen(["sleep", "1004"]).pid)

        def test_it_still_runs(switch):
            assert switch.process.poll() is None

        def test_for_all():
            with lasting():
                note(lasts=subprocess.Popen(["sleep", "1006"]).pid)
        """
    )
    left = outcome.left()
    assert set(left) == {"test_last_of_class", "test_another_beside_it"}
    assert "(sleep 1005)" in left["test_last_of_class"]
    assert "/of-the-class-" in left["test_last_of_class"]
    assert left["test_another_beside_it"] == f"the process {outcome.noted['another']} (sleep 1004)"
    assert outcome.counts() == {"passed": 6, "error": 2}
    assert not any(map(is_alive, outcome.noted.values()))


@needs_root
@needs("ip", "iproute2")
def test_things_of_strangers_are_not_touched(outcome_of, tmp_path):
    name = f"lo{os.getpid()}s"
    file = Path(tempfile.gettempdir()) / "switchgnn-of-a-stranger"
    script = f"""
        until test -s noted; do sleep 0.02; done
        touch {file}; sleep 1006 &
        ip link add {name} type veth peer name {name}p; ip netns add {name}
        touch ready; exec sleep 1007
    """
    with subprocess.Popen(["sh", "-c", script], cwd=tmp_path) as stranger:
        try:
            outcome = outcome_of(
                """
                def test_meanwhile():
                    note(begun=1)
                    subprocess.run("until test -e ready; do sleep 0.02; done", shell=True)
                    subprocess.Popen(["sleep", "1008"])
                """
            )
            assert is_alive(stranger.pid)
            assert len(descendants(stranger.pid)) == 1
        finally:
            for pid in (*descendants(stranger.pid), stranger.pid):
                os.kill(pid, signal.SIGKILL)
    file.unlink()
    for kind in ("link", "netns"):
        subprocess.run(["ip", kind, "delete", name], check=True)
    assert re.fullmatch(r"the process \d+ \(sleep 1008\)", outcome.left()["test_meanwhile"])
    assert name not in outcome.text


@pytest.mark.parametrize(
    ("how", "options", "word"),
    [
        ("SIGTERM", (), "KeyboardInterrupt"),
        pytest.param("SIGINT", (), "KeyboardInterrupt", marks=full),
        # A process of tests dies, and another one looks.
        ("SIGKILL", ("-n1",), "crashed"),
    ],
)
def test_interrupted_tests_leave_nothing(outcome_of, how, options, word):
    outcome = outcome_of(
        f"""
        def test_interrupted():
            note(child=subprocess.Popen(["sleep", "1009"]).pid, folder=tempfile.mkdtemp())
            os.kill(os.getpid(), signal.{how})
            time.sleep(1000)
        """,
        *options,
    )
    assert word in outcome.text
    assert not is_alive(outcome.noted["child"])
    assert not Path(outcome.noted["folder"]).exists()
