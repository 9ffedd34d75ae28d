"""docs/switches.md, played through; ports are UDP sockets in place of interfaces."""

import re
import shlex
import signal

import pytest

from switchgnn.base.machine import python_program
from switchgnn.topologies.child import Child
from switchgnn.topologies.free_ports import free_udp_addresses
from tests.deploy.test_units import DEPLOY, settings_of
from tests.support.commands import forkserver, switchgnn
from tests.support.waiting import wait_until

pytestmark = pytest.mark.whole
PAGE = DEPLOY.parent / "docs/switches.md"
BLOCKS = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
SERVICE, FIRST, AGAIN, *OTHERS = (block.splitlines() for block in BLOCKS)


class Running:
    """The page's switch, in a folder."""

    def __init__(self, folder):
        [line] = SERVICE
        program, *words = shlex.split(line)
        assert program == "switchgnn"
        here, there = free_udp_addresses(2)
        ports = iter((f"udp:{here}:{there}", f"udp:{there}:{here}"))
        self._words = [re.sub(r"eth:enp\ds0", lambda _: next(ports), word) for word in words]
        self._folder = folder

    def __enter__(self):
        command = python_program("switchgnn.commands", *self._words)
        self.child = Child(
            "The switch",
            command,
            self._folder / "log",
            forkserver=forkserver(),
            folder=self._folder,
        )
        self.child.start()
        wait_until((self._folder / "switch.ready").exists, "a switch that serves", 60)
        return self

    def __exit__(self, *_):
        self.child.stop()


def run(line, folder):
    program, *words = shlex.split(line)
    assert program == "switchgnn"
    done = switchgnn(*words, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_reader_gets_through(tmp_path):
    with Running(tmp_path):
        told = [run(line, tmp_path) for line in FIRST]
        assert "entries inserted" in told[1]
        assert "plan " in told[2]
    with Running(tmp_path):
        [line] = AGAIN
        assert "nothing to do, the plan is installed." in run(line, tmp_path)


def test_what_is_done_as_root_names_what_is_there():
    lines = [line for block in OTHERS for line in block]
    for line in lines:
        words = shlex.split(line)
        if words[0] == "cp":
            assert (DEPLOY.parent / words[1]).is_file(), line
        elif words[:2] == ["systemctl", "enable"]:
            assert (DEPLOY / f"{words[-1]}.service").is_file(), line
        elif words[0] == "sudo":
            _, option, user, program, *_ = words
            [unit] = [path for path in DEPLOY.glob("*.service") if user_of(path) == user]
            assert (option, program) == ("-u", "/opt/switchgnn/bin/switchgnn")
            assert f"--address unix:/run/{user}/" in line
            assert f"unix:/run/{user}/" in unit.read_text()
        else:
            assert words[0] in {"systemctl", "podman"}, line


def user_of(path):
    return settings_of(path)["Service"]["User"][0]


def test_signals_are_as_told():
    assert f"(exit code 0) or Ctrl-C ({128 + signal.SIGINT})" in " ".join(PAGE.read_text().split())
