# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The site of a run, and which part of the plan each of its switches serves."""

from collections.abc import Sequence
from itertools import product, starmap
from pathlib import Path

from switchgnn.controller import (
    P4RuntimeClient,
    Share,
    leaf_spine_network,
    load_plan,
    star_network,
    tier_plan,
)
from switchgnn.host.wire.faults import Faults, worker_link
from switchgnn.planner.partition.leaf_spine import Racks
from switchgnn.planner.plan.files import read_manifest
from switchgnn.planner.plan.leaf_spine import Tiers
from switchgnn.topologies import (
    LeafSpineSite,
    Site,
    Star,
    Target,
    TlsFolder,
    cable_name,
    free_tcp_port,
)

_HOST = "127.0.0.1"


def make_site(
    workers: int,
    racks: Racks | None,
    target: Target,
    *,
    grpc_port: int = 0,
    bandwidth: float | None = None,
    tls: TlsFolder | None = None,
) -> Site:
    """Return what to build.

    Args:
        workers: their number.
        racks: the leaves that they hang on, and spines; None: a star around one switch.
        target: which switch runs the program.
        grpc_port: where the first switch serves P4Runtime, the others behind it; 0: anywhere.
        bandwidth: Mbit/s of each link, or None.
        tls: certificates for P4Runtime, or None.
    """
    if racks is None:
        address = _address(grpc_port, 0)
        return Star(star_network(workers), target, address, bandwidth, tls)
    networks = leaf_spine_network(racks.leaf_of_worker, racks.spines)
    addresses = tuple(_address(grpc_port, number) for number in range(len(networks.switches)))
    return LeafSpineSite(networks, target, addresses, bandwidth, tls)


def shares_of(
    plan: Path, tiers: Tiers | None, site: Site, clients: Sequence[P4RuntimeClient]
) -> list[Share]:
    """Say which part of the plan in a folder each switch of the site serves."""
    if tiers is None:
        plans = [load_plan(plan)]
    else:
        manifest = read_manifest(plan)
        plans = [tier_plan(manifest, part) for part in (*tiers.leaves, *tiers.spines)]
    networks = [switch.network for switch in site.switches]
    return [Share(*each) for each in zip(plans, networks, clients, strict=True)]


def faults_on_cables(faults: str, workers: int, racks: Racks | None) -> str:
    """Check what ``--faults`` says; return it if it says anything of cables, or "".

    Raises:
        FaultError: it cannot be read, or names a link that is not there.
    """
    parsed = Faults.parse(faults)
    cables = product(range(racks.leaves), range(racks.spines)) if racks else ()
    parsed.check(
        [*(worker_link(worker) for worker in range(workers)), *starmap(cable_name, cables)]
    )
    return faults if parsed.on_cables else ""


def _address(first: int, number: int) -> str:
    return f"{_HOST}:{first + number if first else free_tcp_port()}"
