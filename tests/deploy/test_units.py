"""The units and the container file in deploy/ are right, and start what there is."""

import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections import defaultdict
from pathlib import Path

import pytest
from typer.main import get_command

from switchgnn.commands.switch import app
from switchgnn.softswitch.base.ports import EthernetSpec, parse_port
from switchgnn.topologies import Target
from switchgnn.topologies.targets import switch_command
from tests.support.installed import MADE, build

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
SWITCH, BMV2 = DEPLOY / "switchgnn-switch.service", DEPLOY / "bmv2-switch.service"


def settings_of(path):
    """The values of each name of a unit, by its section."""
    found, section = defaultdict(lambda: defaultdict(list)), None
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            name, sign, value = line.partition("=")
            assert sign and section, line
            found[section][name].append(value)
    return found


def started(path):
    [line] = settings_of(path)["Service"]["ExecStart"]
    return shlex.split(line)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_has_nothing_against_them(path, tmp_path):
    # It wants the program to be there.
    copy = tmp_path / path.name
    copy.write_text(path.read_text().replace(started(path)[0], sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_embedded_switch_takes_the_options():
    program, command, *words = started(SWITCH)
    assert program.endswith("/bin/switchgnn")
    assert command == "switch"
    with get_command(app).make_context("switch", words) as context:
        options = context.params
    ports = dict(map(parse_port, options["port"]))
    assert all(isinstance(port, EthernetSpec) for port in ports.values())
    assert len(ports) == len(options["port"])
    service = settings_of(SWITCH)["Service"]
    assert options["grpc"].startswith(f"unix:/run/{service['RuntimeDirectory'][0]}/")
    assert service["Type"] == ["notify"]


def test_bmv2_gets_what_the_fabrics_give_it():
    """But for the port of Thrift, and certificates."""
    words = started(BMV2)
    given = words[words.index("--grpc-server-addr") + 1]
    usual = switch_command(
        Target.BMV2, ports={1: "eth:enp1s0", 2: "eth:enp2s0"}, grpc_address=given
    )
    port = usual.index("--thrift-port")
    del usual[port : port + 2]
    assert words == [f"/usr/bin/{usual[0]}", *usual[1:]]


ROOT = DEPLOY.parent
FILE = DEPLOY / "Containerfile"
LINES = re.sub(r"\\\n", " ", FILE.read_text()).splitlines()
STEPS = [line.split(maxsplit=1) for line in LINES if line and not line.startswith("#")]


def given(kind):
    return [words for name, words in STEPS if name == kind]


def test_what_is_copied_is_there():
    for words in given("COPY"):
        for source in words.split()[:-1]:
            assert (ROOT / source).exists(), source


@pytest.mark.full
def test_what_is_copied_is_enough_for_an_installation(tmp_path):
    tree = tmp_path / "src"
    tree.mkdir()
    for words in given("COPY"):
        *sources, folder = words.split()
        for source in sources:
            target = tree / source if folder == "./" else tree / folder
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, target, symlinks=True, ignore=MADE)
            else:
                shutil.copy(ROOT / source, target)
    names = set(zipfile.ZipFile(build("wheel", tree, tmp_path / "out")).namelist())
    assert "switchgnn/commands/switch.py" in names
    assert "switchgnn/p4src/compiled/switchgnn.json" in names
    assert any(name.startswith("switchgnn/softswitch/native/runtime/") for name in names)
