# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The site of a run, and which part of the plan each of its switches serves."""

from collections.abc import Sequence
from itertools import product, starmap
from pathlib import Path

from switchgnn.base.errors import SwitchGNNError
from switchgnn.controller import (
    P4RuntimeClient,
    Share,
    leaf_spine_networks,
    leaf_spine_switch_plan,
    load_plan,
    star_network,
)
from switchgnn.controller.counters import bank_slots
from switchgnn.host.wire.faults import Faults, worker_link
from switchgnn.planner.lanes import WIDEST_ANSWER
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.plan.files import read_manifest
from switchgnn.planner.plan.leaf_spine import LeafSpineParts
from switchgnn.topologies import (
    ETHERNET_MTU,
    Backend,
    LeafSpineSite,
    Site,
    Star,
    Target,
    TlsFolder,
    cable_name,
    free_tcp_port,
    socket_address,
)

_COMMON_HOST = "127.0.0.1"


def make_site(
    workers: int,
    leaf_spine: LeafSpine | None,
    target: Target,
    *,
    folder: Path,
    grpc_port: int = 0,
    bandwidth: float | None = None,
    tls: TlsFolder | None = None,
    backend: Backend | None = None,
    mtu: int = ETHERNET_MTU,
) -> Site:
    """Return what to build.

    Args:
        workers: their number.
        leaf_spine: which leaf each worker is attached to, and the spines; None: a star.
        target: which switch runs the program.
        folder: of the run, for the switches' Unix sockets.
        grpc_port: where the first switch serves P4Runtime over TCP, the others behind it; 0: over
            TCP nowhere, unless there are certificates.
        bandwidth: Mbit/s of each link, or None.
        tls: certificates for P4Runtime, or None.
        backend: what embedded switches run programs as; None: what the environment says.
        mtu: bytes of the largest packet that links take, where they have interfaces.

    Returns:
        The site, not yet built.
    """

    def address(number: int) -> str:
        if grpc_port:
            return f"{_COMMON_HOST}:{grpc_port + number}"
        if tls:  # Certificates are for that host, too.
            return f"{_COMMON_HOST}:{free_tcp_port()}"
        return address_in(folder, number)

    if leaf_spine is None:
        return Star(star_network(workers), target, address(0), bandwidth, tls, backend, mtu)
    networks = leaf_spine_networks(leaf_spine.leaf_of_worker, leaf_spine.spines)
    addresses = tuple(map(address, range(len(networks.switches))))
    return LeafSpineSite(networks, target, addresses, bandwidth, tls, backend, mtu)


def address_in(folder: Path, number: int) -> str:
    """Return where a switch of a site serves P4Runtime in the site's folder for sockets."""
    return socket_address(folder, f"switch-{number}")


def shares_of(
    plan: Path, parts: LeafSpineParts | None, site: Site, clients: Sequence[P4RuntimeClient]
) -> list[Share]:
    """Say which part of a plan each switch of the site serves.

    Args:
        plan: its folder.
        parts: those of the plan for leaves and spines; None for a star.
        site: the switches, leaves first.
        clients: one for each switch.

    Returns:
        One share for each switch, in order.

    Raises:
        SwitchGNNError: the frames of the plan are too wide for BMv2.
    """
    lanes = read_manifest(plan).lanes
    if site.target is Target.BMV2 and lanes > WIDEST_ANSWER:
        raise SwitchGNNError(
            f"BMv2 cannot answer a recall with a frame of {lanes} numbers, which is more than 512 "
            f"bytes longer: give --lanes {WIDEST_ANSWER}, or --target embedded."
        )
    if parts is None:
        plans = [load_plan(plan)]
    else:
        manifest = read_manifest(plan)
        plans = [leaf_spine_switch_plan(manifest, part) for part in parts.switches]
    networks = [switch.network for switch in site.switches]
    return [Share(*each) for each in zip(plans, networks, clients, strict=True)]


def bank_slots_of(shares: Sequence[Share]) -> list[int]:
    """Return for each switch how many slots of each bank its share uses, at most."""
    return [bank_slots(load_plan(share.plan).switch) for share in shares]


def faults_on_cables(faults: str, workers: int, leaf_spine: LeafSpine | None) -> str:
    """Check what ``--faults`` says; return it if it says anything of cables, or "".

    Args:
        faults: what the option says.
        workers: their number.
        leaf_spine: which cables there are; None for a star, which has none.

    Returns:
        The same text, or "".

    Raises:
        FaultError: it cannot be read, or names a link that is not there.
    """
    parsed = Faults.parse(faults)
    cables = product(range(leaf_spine.leaves), range(leaf_spine.spines)) if leaf_spine else ()
    parsed.check(
        [*(worker_link(worker) for worker in range(workers)), *starmap(cable_name, cables)]
    )
    return faults if parsed.on_cables else ""
