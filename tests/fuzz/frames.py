"""Random and mutated frames for a world, from a seed."""

from random import Random

from switchgnn.base.network import Station
from switchgnn.host.wire.addresses import Addresses
from tests.simulation import byzantine
from tests.simulation.network import EXTENSION_AT, body_end, seal

IN_A_DATAGRAM = 60_000
# Addresses that no kernel on the path owns.
_FROM, _TO = "10.9.1.1", "10.9.2.2"
_BITS_AT = 2
_PING_MARK = b"an echo request"
# For experiments within a network (IEEE 802).
_PING_ETHERTYPE = 0x88B5


class Generator(byzantine.Generator):
    """Draws frames of which some have numbers of fewer bits, even where no body has them."""

    def packet(self, kind=None):
        frame, draw = super().packet(kind), self.random
        if draw.random() < 0.4:
            frame[EXTENSION_AT] |= draw.randrange(1, 4) << _BITS_AT
            del frame[body_end(frame) :]
            seal(frame)
        return frame


def generator_for(world, seed, *, source, target, longest=IN_A_DATAGRAM):
    """Return a generator of frames from one MAC to another, and to all workers."""
    addresses = Addresses(Station(source, _FROM), Station(target, _TO))
    macs = [each.station.mac for each in world.network.neighbours]
    return byzantine.generator_between(
        world.facts, Random(seed), addresses, macs, Generator, longest
    )


def ping(source, number):
    """An ordinary frame of a station to itself, which returns when the switch has forwarded it."""
    mac = bytes.fromhex(source.replace(":", ""))
    return mac + mac + _PING_ETHERTYPE.to_bytes(2, "big") + _PING_MARK + number.to_bytes(8, "big")


def is_ping(frame):
    return _PING_MARK in bytes(frame[:64])
