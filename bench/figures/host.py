"""The packets per second that one core of a host sends, compared with Scapy."""

import time
from collections.abc import Callable, Iterator

import numpy as np

from bench.line import Goal, ResultLine
from bench.machine import lacks
from bench.measure import alternate
from bench.settings import Settings
from bench.testbeds.veth import make_pair, remove_pair
from switchgnn.controller import star_network
from switchgnn.host.innetwork.schedule import FeatureFrames
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import LANES, fragment_words
from switchgnn.host.wire.link import InterfaceLink, Link

NAME = "host"
_UNIT = "packets/s"
_LEAST = 100_000
_RATIO = 10.0
_FEATURES = 512
_ECHO_EVERY = 8
_HERE, _THERE = "benchhost0", "benchhost1"
missing = lacks


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure both senders; the other end of the pair does not read."""
    make_pair(_HERE, _THERE)
    try:
        with InterfaceLink(_HERE) as link:
            a = ("fill and send", _repeat_for(settings.seconds / 2, _hot_path(link)))
            b = ("Scapy", _repeat_for(settings.seconds, _scapy()))
            samples = alternate(settings.pairs, a, b)
    finally:
        remove_pair(_HERE)
    yield ResultLine(
        NAME,
        "features packed and sent, one core",
        _UNIT,
        *samples,
        goal=Goal(ratio=_RATIO, least=_LEAST),
        note="time on the clock, not of the CPU",
    )


def _addresses() -> Addresses:
    network = star_network(1)
    return Addresses(network.neighbours[0].station, network.switch)


def _hot_path(link: Link) -> Callable[[], int]:
    frames = FeatureFrames(
        _addresses(), 1, np.arange(_FEATURES, dtype=np.uint32), _ECHO_EVERY, session=1
    )
    (word,) = fragment_words(LANES, LANES)
    lanes = np.arange(_FEATURES * LANES, dtype=np.int32).reshape(-1, LANES)
    round_number = 0

    def once() -> int:
        nonlocal round_number
        round_number += 1
        link.send_rows(frames.fill(round_number, word, lanes), 0, _FEATURES)
        return _FEATURES

    return once


def _scapy() -> Callable[[], int]:
    # Importing Scapy takes half a second, which only this figure should spend.
    from scapy.config import conf  # noqa: PLC0415
    from scapy.layers.inet import IP  # noqa: PLC0415
    from scapy.layers.l2 import Ether  # noqa: PLC0415

    from switchgnn.host.scapy_host.layers import Fragment, SwitchGNN  # noqa: PLC0415

    addresses = _addresses()
    sock = conf.L2socket(iface=_HERE)
    round_number = 0

    def packet(source: int) -> Ether:
        return (
            Ether(src=addresses.worker.mac, dst=addresses.switch.mac)
            / IP(src=addresses.worker.ip, dst=addresses.switch.ip, tos=2, id=0)
            / SwitchGNN(Src_id=source, Block_id=1, Count=1)
            / Fragment(lanes=list(range(source * LANES, (source + 1) * LANES)))
        )

    packets = [packet(source) for source in range(64)]

    def once() -> int:
        nonlocal round_number
        round_number += 1
        for one in packets:
            one[SwitchGNN].Round = round_number
            sock.send(one)
        return len(packets)

    return once


def _repeat_for(seconds: float, step: Callable[[], int]) -> Callable[[], float]:
    """Return a measurement that repeats a step and gives packets per second."""

    def measure() -> float:
        sent, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds:
            sent += step()
        return sent / elapsed

    return measure
