"""docs/switches.md, played through; ports are UDP sockets in place of interfaces."""

import doctest
import os
import re
import shlex
import sys
from contextlib import ExitStack, contextmanager

import pytest

from switchgnn.topologies.rpc_address import free_tcp_port, free_udp_addresses
from tests.deploy.test_units import DEPLOY, settings_of
from tests.support.commands import started, switchgnn
from tests.support.processes import run_program
from tests.support.waiting import wait_until

pytestmark = pytest.mark.whole
ROOT = DEPLOY.parent
PAGE = ROOT / "docs/switches.md"
BLOCKS = re.findall(r"^```(bash|console)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
SERVICE, FIRST, AGAIN, *OTHERS = (text.splitlines() for kind, text in BLOCKS if kind == "bash")
SHOWN = "".join(text for kind, text in BLOCKS if kind == "console")
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
COMMANDS_AND_OUTPUTS = COMMAND.findall(SHOWN)
COURSE = (ROOT / "docs/course.md").read_text()
PROMPT = re.compile(r"^P4Runtime sh >>> ", re.MULTILINE)
READY = ROOT / ".venv-shell/ready"
LEAVES_OUT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@contextmanager
def running(folder):
    """The page's switch, in a folder."""
    [line] = SERVICE
    program, *words = shlex.split(line)
    assert program == "switchgnn"
    here, there = free_udp_addresses(2)
    ports = iter((f"udp:{here}:{there}", f"udp:{there}:{here}"))
    words = [re.sub(r"eth:enp\ds0", lambda _: next(ports), word) for word in words]
    with started(*words, log=folder / "log", folder=folder):
        wait_until((folder / "switch.ready").exists, "a switch that serves", 60)
        yield


def run(line, folder):
    program, *words = shlex.split(line)
    assert program == "switchgnn"
    done = switchgnn(*words, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_reader_gets_through(tmp_path):
    [line] = AGAIN
    with ExitStack() as stack:
        with running(tmp_path):
            told = [run(each, tmp_path) for each in FIRST]
            assert "entries inserted" in told[1]
            assert "plan " in told[2]
            words = shlex.split(line)[1:]
            watch = stack.enter_context(started(*words, log=tmp_path / "watch", folder=tmp_path))
            assert "nothing to do, the plan is installed." in watch.stdout.readline()
        with running(tmp_path):
            assert any("of 1 job restored (default)" in told for told in watch.stdout)


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
            units = DEPLOY.glob("*.service")
            [unit] = [each for each in units if settings_of(each)["Service"]["User"] == [user]]
            assert (option, program) == ("-u", "/opt/switchgnn/bin/switchgnn")
            assert f"--address unix:/run/{user}/" in line
            assert f"unix:/run/{user}/" in unit.read_text()
        else:
            assert words[0] in {"systemctl", "podman"}, line


def made(command, *variables):
    ready = ("--no-print-directory", "-n", "-o", ".venv/base", "-o", ".venv-shell/ready")
    recipe = run_program([*shlex.split(command), *ready, *variables], cwd=ROOT, check=True).stdout
    return shlex.split(recipe.replace("\\\n", ""))


def same(shown, printed):
    return doctest.OutputChecker().check_output(shown, printed, LEAVES_OUT)


def type_in(command, shown, port, folder):
    """Start a shell of the page, type its lines, and compare what it prints."""
    banner, *inputs = PROMPT.split(shown)
    lines = [text.partition("\n")[::2] for text in inputs]
    done = run_program(
        made(command, f"GRPC_PORT={port}"),
        cwd=ROOT,
        input="".join(f"{line}\n" for line, _ in lines),
        env={**os.environ, "TERM": "dumb", "IPYTHONDIR": str(folder / "ipython")},
    )
    start, *printed = PROMPT.split(done.stdout)
    assert banner in start, done.stderr
    for (line, output), got in zip(lines, printed, strict=True):
        assert same(output, got), f"{line}\n{got}"


@contextmanager
def watching(command, shown, port, folder):
    """Yield a watch of the page that has printed what the page shows."""
    words = [*shlex.split(command)[1:], "--address", f"127.0.0.1:{port}"]
    with started(*words, log=folder / "watch", folder=folder) as child:
        printed = child.stdout.readline()
        assert same(shown.replace("9559", str(port)), printed), printed
        yield child


@pytest.mark.skipif(not READY.exists(), reason="no p4runtime-shell (make .venv-shell/ready)")
def test_a_session_with_p4runtime_shell(tmp_path):
    port = free_tcp_port()
    (up, _), deletes, (plan, _), watch, reads, outranks, watch_again = COMMANDS_AND_OUTPUTS
    words = made(up, f"GRPC_PORT={port}", "FABRIC=loopback")[1:]
    with started(*words, log=tmp_path / "up", folder=tmp_path) as keeping:
        wait_until(lambda: "Ctrl-C ends it" in keeping.log.read_text(), "a switch that is kept")
        type_in(*deletes, port, tmp_path)
        run(plan, tmp_path)
        with watching(*watch, port, tmp_path) as child:
            type_in(*reads, port, tmp_path)
            type_in(*outranks, port, tmp_path)
            assert any("give --election-id 2" in line for line in child.stdout)
            assert "no longer obeys this controller" in child.log.read_text()
        with watching(*watch_again, port, tmp_path):
            pass


@pytest.mark.skipif(not READY.exists(), reason="no p4runtime-shell (make .venv-shell/ready)")
def test_the_exercise_with_p4runtime_shell(tmp_path):
    port, missing = free_tcp_port(), tmp_path / "missing.txt"
    shown = "".join(re.findall(r"^```console\n(.*?)^```", COURSE, re.MULTILINE | re.DOTALL))
    (up, _), empties, (plan, _), lists, fills, passes = COMMAND.findall(shown)

    def grade(command, printed):
        words = shlex.split(command.partition(" | ")[0].replace("python ", f"{ROOT}/"))
        done = run_program([sys.executable, *words, "--address", f"127.0.0.1:{port}"], cwd=tmp_path)
        assert same(printed, done.stdout), done.stdout
        missing.write_text(done.stdout)

    with started(*made(up, f"GRPC_PORT={port}")[1:], log=tmp_path / "up", folder=tmp_path) as child:
        wait_until(lambda: "Ctrl-C ends it" in child.log.read_text(), "a switch that is kept")
        type_in(*empties, port, tmp_path)
        run(plan, tmp_path)
        grade(*lists)
        type_in(fills[0], fills[1].replace("missing.txt", str(missing)), port, tmp_path)
        grade(*passes)
