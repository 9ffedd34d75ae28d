# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Switches as command lines; several of one kind run side by side."""

import subprocess
from contextlib import ExitStack

import pytest

from switchgnn.topologies import Backend, Target, socket_address, targets
from switchgnn.topologies.targets import switch_child, switch_command, wait_until_serving
from tests.support.markers import needs_bmv2, needs_root
from tests.support.networks import own_network


def command(target=Target.BMV2):
    return switch_command(target, ports={}, grpc_address="unix:/run/switch.sock", device_id=0)


@pytest.fixture
def build(monkeypatch):
    """Call it to have a BMv2 whose help says so."""

    def make(help_text):
        monkeypatch.setattr(targets, "BMV2_PROGRAM", f"bmv2 {help_text}")
        told = subprocess.CompletedProcess([], 0, help_text, "")
        monkeypatch.setattr(targets.subprocess, "run", lambda *_, **__: told)

    return make


def test_each_bmv2_with_thrift_has_a_thrift_port_of_its_own(build):
    build("  --thrift-port arg  TCP port on which to run the Thrift runtime server")
    words = [command() for _ in range(2)]
    ports = {word[word.index("--thrift-port") + 1] for word in words}
    assert len(ports) == 2
    assert "9090" not in ports


def test_a_bmv2_without_thrift_is_not_given_one(build):
    build("  --device-id arg")
    assert "--thrift-port" not in command()
    assert "--thrift-port" not in command(Target.EMBEDDED)


def test_the_embedded_switch_is_told_what_to_run():
    words = switch_command(
        Target.EMBEDDED,
        ports={},
        grpc_address="unix:/run/switch.sock",
        device_id=0,
        backend=Backend.PYTHON,
    )
    assert words[words.index("--backend") + 1] == "python"
    assert "--backend" not in command(Target.EMBEDDED)


@pytest.mark.whole
@needs_bmv2
@needs_root
def test_two_bmv2_run_side_by_side(tmp_path):
    with own_network() as network, ExitStack() as stack:
        for number in range(2):
            address = socket_address(tmp_path, f"switch-{number}")
            log = tmp_path / f"{number}.log"
            child = switch_child(
                Target.BMV2,
                ports={},
                grpc_address=address,
                device_id=0,
                log=log,
                namespace=network.path,
            )
            stack.enter_context(child)
            wait_until_serving(child, address)
