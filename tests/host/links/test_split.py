"""Two exchanges on one link: each gets its own frames, all of them, in order, and unchanged."""

import os
import random
from contextlib import ExitStack

import pytest

from switchgnn.host.hybrid import SplitLink
from switchgnn.host.wire.header import ETHERNET_BYTES, ETHERTYPE_IPV4, PROTOCOL
from switchgnn.host.wire.link import InterfaceLink, open_link
from switchgnn.topologies.free_ports import free_udp_addresses
from tests.support.markers import needs_root
from tests.support.networks import in_network, own_network
from tests.support.speed import seconds_here

OTHER = 254
HERE, THERE = f"s{os.getpid() % 0xFFFF:x}h", f"s{os.getpid() % 0xFFFF:x}t"


def frame(protocol, number, size=60):
    data = bytearray(size)
    data[12:14] = ETHERTYPE_IPV4.to_bytes(2, "big")
    data[ETHERNET_BYTES] = 0x45
    data[ETHERNET_BYTES + 9] = protocol
    data[-4:] = number.to_bytes(4, "big")
    return bytes(data)


@pytest.fixture
def ends():
    here, there = free_udp_addresses(2)
    with open_link(f"udp:{here}:{there}") as link, open_link(f"udp:{there}:{here}") as far:
        yield SplitLink(link, OTHER), link, far


def all_of(part, how):
    """Frames until nothing comes: one by one, in batches, or either by chance."""
    got = []
    while True:
        batches = how == "batches" or (how == "chance" and random.random() < 0.5)
        if batches:
            batch = part.receive_batch(seconds_here(0.05))
            if batch is None:
                return got
            got += [bytes(batch.frame(index)) for index in range(batch.first, batch.count)]
        else:
            one = part.receive(seconds_here(0.05))
            if one is None:
                return got
            got.append(bytes(one))


def sent_by(far, count, seed=0):
    """Send frames of both in a random order and of random sizes; return those of each."""
    drawn = random.Random(seed)
    own = {PROTOCOL: [], OTHER: []}
    for number in range(count):
        each = frame(drawn.choice((PROTOCOL, OTHER)), number, drawn.randrange(28, 1400))
        own[each[23]].append(each)
        far.send(each)
    return own[PROTOCOL], own[OTHER]


def test_turns_change_at_any_frame(ends):
    """What one part has not taken yet survives what the other receives."""
    split, _, far = ends
    drawn, got = random.Random(1), ([], [])
    sent = ([], [])
    for turn in range(100):
        for own, new in zip(sent, sent_by(far, drawn.randrange(8), turn), strict=True):
            own.extend(new)
        which = drawn.randrange(2)
        part = (split.first, split.second)[which]
        if drawn.random() < 0.5:
            one = part.receive(0.0)
            got[which].extend([] if one is None else [bytes(one)])
        elif (batch := part.receive_batch(0.0)) is not None:
            got[which].extend(bytes(batch.frame(at)) for at in range(batch.first, batch.count))
    rest = [all_of(part, "chance") for part in (split.first, split.second)]
    assert ([*got[0], *rest[0]], [*got[1], *rest[1]]) == sent


def test_short_and_strange_frames_are_the_first_part_s(ends):
    split, _, far = ends
    strange = [b"x", bytes(range(23)), frame(OTHER, 1)[:23], frame(6, 2), frame(OTHER, 3)[:24]]
    for each in strange:
        far.send(each)
    assert all_of(split.second, "batches") == [strange[-1]]
    assert all_of(split.first, "batches") == strange[:-1]


def test_the_other_exchange_goes_on_while_nothing_comes(ends):
    split, _, far = ends
    calls = []

    def meanwhile():
        calls.append(bool(split.second.kept))
        if len(calls) == 2:
            far.send(frame(OTHER, 1))
        if len(calls) == 4:
            far.send(frame(PROTOCOL, 2))
        return 0.001

    split.first.meanwhile = meanwhile
    assert bytes(split.first.receive(seconds_here(5))) == frame(PROTOCOL, 2)
    # It is asked again as soon as it has a frame.
    assert calls[:2] == [False, False]
    assert calls[3]
    # What is here comes without it, unless its turn has come.
    far.send(frame(PROTOCOL, 3))
    assert bytes(split.first.receive(seconds_here(5))) == frame(PROTOCOL, 3)


def test_a_busy_link_leaves_the_other_exchange_its_turns(ends):
    split, _, far = ends
    calls = []

    def meanwhile():
        calls.append(split.second.receive(0.0))
        return float("inf")

    split.first.meanwhile = meanwhile
    for number in range(1000):
        far.send(frame(PROTOCOL, number))
        came = split.first.receive(seconds_here(5))
        assert int.from_bytes(bytes(came[-4:]), "big") == number
    assert 0 < len(calls) < 1000


def test_a_flood_is_lost_as_in_a_full_socket(ends, monkeypatch):
    split, _, far = ends
    monkeypatch.setattr("switchgnn.host.hybrid._KEPT_AT_MOST", 100)
    for number in range(400):
        far.send(frame(OTHER, number))
    assert all_of(split.first, "batches") == []
    kept = all_of(split.second, "batches")
    assert 100 <= len(kept) < 400
    assert kept == [frame(OTHER, number) for number in range(len(kept))]


@needs_root
@pytest.mark.parametrize("protocols", [(), (OTHER,), (PROTOCOL, OTHER)])
def test_an_interface_has_the_protocols_that_it_is_opened_for(protocols):
    with ExitStack() as stack:
        network = stack.enter_context(own_network())
        network.add_cable(HERE, THERE)
        link = stack.enter_context(InterfaceLink(HERE, *protocols))
        with in_network(network.path):
            far = stack.enter_context(InterfaceLink(THERE))
        for number, protocol in enumerate((6, PROTOCOL, OTHER, 252)):
            far.send(frame(protocol, number))
        got = []
        while (one := link.receive(seconds_here(0.1))) is not None:
            got.append(one[23])
        assert got == list(protocols or (PROTOCOL,))
