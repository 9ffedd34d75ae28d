# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a network file says of a switch, and what it cannot say."""

from dataclasses import replace

import pytest

from switchgnn.base.described import SwitchTarget, network_text
from switchgnn.base.network import NetworkError
from switchgnn.commands.switch import as_described
from switchgnn.softswitch.daemon.options import SwitchOptions
from tests.network.usual import described_leaf_spine, described_star

PORTS = {"1": "eth:enp1s0", "2": "udp:127.0.0.1:1:127.0.0.1:2"}


@pytest.fixture
def file(tmp_path):
    def write(network, **changes):
        switches = [replace(each, ports=PORTS, **changes) for each in network.switches]
        path = tmp_path / "network.toml"
        path.write_text(network_text(replace(network, switches=tuple(switches))))
        return path

    return write


def test_the_only_switch(file):
    path = file(described_star(2), grpc="unix:switch.sock", device_id=7)
    found = as_described(SwitchOptions(queue_depth=3), path, None)
    assert found == SwitchOptions(
        grpc="unix:switch.sock",
        device_id=7,
        queue_depth=3,
        port=["1=eth:enp1s0", "2=udp:127.0.0.1:1:127.0.0.1:2"],
    )


def test_one_of_several(file):
    path = file(described_leaf_spine((0, 1), 1))
    assert as_described(SwitchOptions(), path, "spine0").port
    with pytest.raises(NetworkError, match="several switches: --name is one of leaf0, leaf1, sp"):
        as_described(SwitchOptions(), path, None)
    with pytest.raises(NetworkError, match="has no switch spine1: --name is one of leaf0"):
        as_described(SwitchOptions(), path, "spine1")


@pytest.mark.parametrize(
    ("options", "changes", "sentence"),
    [
        (SwitchOptions(grpc="unix:a"), {}, "leave out --grpc and --port"),
        (SwitchOptions(port=["1=eth:a"]), {}, "leave out --grpc and --port"),
        (SwitchOptions(), {"target": SwitchTarget.BMV2}, "switch s0 is a bmv2"),
        (SwitchOptions(), {"ports": {}}, "switch s0 has no ports"),
    ],
)
def test_what_cannot_be(tmp_path, options, changes, sentence):
    network = described_star(2)
    [switch] = network.switches
    path = tmp_path / "network.toml"
    changed = replace(network, switches=(replace(switch, **{"ports": PORTS, **changes}),))
    path.write_text(network_text(changed))
    with pytest.raises(NetworkError, match=sentence):
        as_described(options, path, None)
