# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a network file says of the switch that is to run here."""

from dataclasses import replace
from pathlib import Path

from switchgnn.base.described import DescribedNetwork, DescribedSwitch, SwitchTarget, read_network
from switchgnn.base.network import NetworkError
from switchgnn.softswitch.daemon.options import SwitchOptions


def as_described(options: SwitchOptions, path: Path, name: str | None) -> SwitchOptions:
    """Return the options of a switch with the address, device id and ports that a file has.

    Args:
        options: what the file does not say.
        path: the network file.
        name: of the switch; None: the only one.

    Returns:
        All of them.

    Raises:
        NetworkError: the file cannot be used, has no such switch, or not enough of it; or what it
            says is among the options.
    """
    if options.grpc is not None or options.port:
        raise NetworkError("--network says where the switch is: leave out --grpc and --port.")
    switch = _chosen(read_network(path), path, name)
    if switch.target is not SwitchTarget.EMBEDDED:
        raise NetworkError(
            f"{path}: switch {switch.name} is a {switch.target.value}, which this command does "
            "not run."
        )
    if not switch.ports:
        raise NetworkError(
            f"{path}: switch {switch.name} has no ports; write what is at each, as "
            'ports = { "1" = "eth:enp1s0" }.'
        )
    ports = [f"{number}={what}" for number, what in switch.ports.items()]
    return replace(options, grpc=switch.grpc, device_id=switch.device_id, port=ports)


def _chosen(network: DescribedNetwork, path: Path, name: str | None) -> DescribedSwitch:
    by_name = {switch.name: switch for switch in network.switches}
    if name is None and len(by_name) == 1:
        return network.switches[0]
    found = by_name.get(name or "")
    if found is None:
        which = f"has no switch {name}" if name else "has several switches"
        raise NetworkError(f"{path} {which}: --name is one of {', '.join(by_name)}.")
    return found
