# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Network files: TOML that controller, workers and doctor share."""

import json
from dataclasses import replace
from pathlib import Path

from switchgnn.network.check import check_network
from switchgnn.network.described import DescribedNetwork, DescribedSwitch, TlsFiles
from switchgnn.network.errors import NetworkError
from switchgnn.records import RecordError, make_record
from switchgnn.toml_file import read_toml

_MOST_BYTES = 1 << 20


def read_network(path: Path) -> DescribedNetwork:
    """Read and check a network file; paths in it are relative to its folder.

    Raises:
        NetworkError: it cannot be read, is no TOML, or describes no network; the sentence says
            where and what.
    """
    told = read_toml(path, _MOST_BYTES, "network", NetworkError)
    try:
        network = make_record(DescribedNetwork, told)
    except RecordError as error:
        raise NetworkError(f"{path} describes no network: {error}.") from error
    check_network(network, str(path))
    return replace(
        network, switches=tuple(_placed(switch, path.parent) for switch in network.switches)
    )


def network_text(network: DescribedNetwork) -> str:
    """Return a network as the text of a file, without what has its default."""
    blocks = [
        _block("switches", switch, ("name", "grpc", "target", "mac", "ip", "device_id", "ports"))
        + _tls_line(switch.tls)
        for switch in network.switches
    ]
    names = ("switch", "port", "interface", "link", "mac", "ip", "gloo", "metrics")
    blocks += [
        f"# worker {number}\n" + _block("workers", worker, names)
        for number, worker in enumerate(network.workers)
    ]
    blocks += [
        _block("cables", cable, ("leaf", "leaf_port", "spine", "spine_port"))
        for cable in network.cables
    ]
    return "\n".join(blocks)


def _placed(switch: DescribedSwitch, folder: Path) -> DescribedSwitch:
    if switch.tls is None:
        return switch
    tls = switch.tls
    return replace(
        switch,
        tls=TlsFiles(
            folder / tls.root,
            tls.certificate and folder / tls.certificate,
            tls.key and folder / tls.key,
        ),
    )


def _block(kind: str, record: object, names: tuple[str, ...]) -> str:
    lines = [f"[[{kind}]]"]
    for name in names:
        value = getattr(record, name)
        if value not in ("", 0, {}):
            lines.append(f"{name} = {_value(value)}")
    return "\n".join(lines) + "\n"


def _tls_line(tls: TlsFiles | None) -> str:
    if tls is None:
        return ""
    told = {"root": tls.root, "certificate": tls.certificate, "key": tls.key}
    return f"tls = {_value({name: str(path) for name, path in told.items() if path})}\n"


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_value(v)}" for k, v in value.items()) + " }"
    # A text of JSON is one of TOML, too, but for what JSON writes as two surrogates.
    return json.dumps(value, ensure_ascii=False)
