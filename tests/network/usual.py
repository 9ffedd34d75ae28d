"""Described networks with the usual ports and addresses."""

from dataclasses import replace

from switchgnn.base import network_file
from switchgnn.base.network import leaf_spine_networks, star_network


def described_star(workers=3, **changes):
    network = star_network(workers)
    switch = described_switch("s0", network, **changes)
    return network_file.DescribedNetwork((switch,), tuple(_workers("s0", network.neighbours)))


def with_links(network, *limits):
    """Give the workers links over UDP in place of interfaces, and perhaps a limit to each."""
    limits = limits or [""] * len(network.workers)
    workers = (
        replace(each, interface="", link=f"udp:127.0.0.1:{port}:127.0.0.1:{port + 1}{limit}")
        for each, port, limit in zip(network.workers, range(2000, 3000, 2), limits, strict=False)
    )
    return replace(network, workers=tuple(workers))


def described_leaf_spine(leaf_of_worker, spines):
    networks = leaf_spine_networks(leaf_of_worker, spines)
    names = [f"leaf{number}" for number in range(len(networks.leaves))]
    tops = [f"spine{number}" for number in range(spines)]
    workers = [
        worker
        for name, leaf in zip(names, networks.leaves, strict=True)
        for worker in _workers(name, leaf.neighbours[:-spines])
    ]
    return network_file.DescribedNetwork(
        switches=tuple(
            described_switch(name, network)
            for name, network in zip((*names, *tops), networks.switches, strict=True)
        ),
        workers=tuple(workers),
        cables=tuple(
            network_file.Cable(name, up.port, top, down.port)
            for number, (name, leaf) in enumerate(zip(names, networks.leaves, strict=True))
            for top, up, spine in zip(tops, leaf.neighbours[-spines:], networks.spines, strict=True)
            for down in [spine.neighbours[number]]
        ),
    )


def described_switch(name, network, **changes):
    station = network.switch
    fields = {"grpc": f"192.0.2.1:{9559}", "target": network_file.Target.EMBEDDED, **changes}
    return network_file.DescribedSwitch(name=name, mac=station.mac, ip=station.ip, **fields)


def _workers(switch, neighbours):
    for each in neighbours:
        station = each.station
        yield network_file.DescribedWorker(
            switch, each.port, station.mac, station.ip, interface="eth1"
        )
