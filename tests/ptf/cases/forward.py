"""forward.p4: ordinary traffic is switched by destination and not touched."""

from scapy.layers.inet import UDP, IPOption_Router_Alert
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from switchgnn.controller import Outcome
from switchgnn.controller.controls.forward import BROADCAST
from tests.ptf.switchgnn_ptf.packets import (
    NETWORK,
    STRANGER_PORT,
    feature,
    ordinary,
    random_lanes,
    station,
)
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

TO_PORT_2 = station(2).mac
UNKNOWN = "02:00:00:00:99:99"
TEXT = Raw(bytes(range(64)))


class OtherTrafficIsNotTouched(SwitchTest):
    """IPv4 of any size with wrong checksums, options or fragments, and other protocols."""

    def runTest(self) -> None:
        options = [IPOption_Router_Alert()]
        body = Raw(bytes(feature(101, random_lanes(1), port=1))[34:])
        ethernet = Ether(src=station(1).mac, dst=TO_PORT_2)
        packets = (
            ordinary(1, TO_PORT_2, UDP(dport=99), TEXT),
            ordinary(1, TO_PORT_2, UDP(dport=99), Raw(bytes(1400))),
            ordinary(1, TO_PORT_2, TEXT, proto=6, tos=1),
            ordinary(1, TO_PORT_2, TEXT, ttl=1, chksum=0xBAD, len=9),
            ordinary(1, TO_PORT_2, TEXT, version=5),
            ordinary(1, TO_PORT_2, UDP(), TEXT, options=options),
            ordinary(1, TO_PORT_2, TEXT, options=options * 10, proto=6),
            ordinary(1, TO_PORT_2, body, flags="MF"),
            ordinary(1, TO_PORT_2, body, flags="MF", frag=0x100),
            ordinary(1, TO_PORT_2, body, frag=0x1FFF),
            ethernet / IPv6(src="fd00::1", dst="fd00::2") / UDP() / TEXT,
            ethernet / ARP(op="is-at", psrc="10.0.0.1", pdst="10.0.0.2"),
            Ether(src=station(1).mac, dst=TO_PORT_2, type=0x1234) / TEXT,
        )
        with self.counted(Outcome.FORWARDED, len(packets), passes={}):
            for packet in packets:
                self.send(1, packet)
                self.expect(2, packet)


class EveryPortIsReached(SwitchTest):
    """From every port of the job to every port, back out of the same one too."""

    def runTest(self) -> None:
        self.entries.add_worker(port=STRANGER_PORT, worker=STRANGER_PORT - 1)
        ports = [own.port for own in NETWORK.neighbours]
        with self.counted(Outcome.FORWARDED, len(ports) ** 2):
            for sender in ports:
                for to in ports:
                    packet = ordinary(sender, station(to).mac, UDP(), TEXT)
                    self.send(sender, packet)
                    self.expect(to, packet)


class BroadcastIsFlooded(SwitchTest):
    """An ARP request reaches every worker but its sender, once and as it was."""

    def runTest(self) -> None:
        # In the job, but not in its group.
        self.entries.add_worker(port=STRANGER_PORT, worker=STRANGER_PORT - 1)
        for sender, others in ((1, (2, 3)), (3, (1, 2)), (STRANGER_PORT, (1, 2, 3))):
            own = station(sender)
            packet = Ether(src=own.mac, dst=BROADCAST) / ARP(psrc=own.ip, pdst="10.0.0.2")
            self.exchange(Outcome.FLOODED, sender, packet, dict.fromkeys(others, packet), passes={})


class UnknownStationIsDropped(SwitchTest):
    """A destination that no entry names is dropped, and known ones still work."""

    def runTest(self) -> None:
        with self.counted(Outcome.UNKNOWN_STATION, 2, passes={}):
            self.send(1, ordinary(1, UNKNOWN, UDP(), TEXT))
            self.send(1, Ether(src=station(1).mac, dst="33:33:00:00:00:01", type=0x86DD) / TEXT)
        known = ordinary(1, TO_PORT_2, UDP(), TEXT)
        self.exchange(Outcome.FORWARDED, 1, known, {2: known})
