# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a mad worker of a scenario makes its frames of."""

from random import Random

from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import ETHERNET_BYTES, VERSION, Header, Kind
from switchgnn.virtual.mad.facts import Facts, facts_of
from switchgnn.virtual.mad.generator import Generator
from switchgnn.virtual.network.fields import body_bytes, seal, write_header
from switchgnn.virtual.scenario.scenario import Scenario
from switchgnn.virtual.subject import Subject

_KINDS = range(16)
_NOBODY = "02:00:00:00:77:77"
_BROADCAST = "ff:ff:ff:ff:ff:ff"
_PLAN_AT = 4
# The word of the first fragment of 32 numbers.
_BANK_WIDTH = 2
# What follows the addresses of frames that are none of SwitchGNN's: types, and what they hold.
_ARP, _IPV6, _LLDP = b"\x08\x06", b"\x86\xdd", b"\x88\xcc"
_VLAN, _LLC, _EXPERIMENT = b"\x81\0\0\x07", b"\0\x04\xaa\xaa\x03x", b"\x88\xb5"
_UDP = 17


def generator_for(scenario: Scenario, subject: Subject, worker: int, random: Random) -> Generator:
    """Return what draws frames of a worker.

    Args:
        scenario: what happens.
        subject: what is exchanged.
        worker: whose frames.
        random: all draws follow from it.

    Returns:
        The generator.
    """
    site = subject.site
    spines = [share.plan.switch for share in subject.shares[scenario.leaves or 1 :]]
    facts = facts_of(subject.plan, scenario.width, spines)
    addresses = site.addresses(worker)
    templates = {kind: _template(kind, addresses, facts) for kind in _KINDS}
    macs = [site.station(other).mac for other in range(scenario.workers)]
    macs += [addresses.switch.mac, _NOBODY, _BROADCAST]
    ordinary = [
        _mac_bytes(mac) + _mac_bytes(addresses.worker.mac) + rest
        for mac in macs
        for rest in _rests(templates)
    ]
    return Generator(facts, random, templates=templates, ordinary=ordinary)


def _template(kind: int, addresses: Addresses, facts: Facts) -> bytes:
    """Return a frame of a kind, sound but for its numbers; kinds that do not exist are empty."""
    body = bytearray(body_bytes(kind, _BANK_WIDTH))
    if kind in (Kind.DONE, Kind.ADVANCE, Kind.WAITING):
        body[_PLAN_AT : _PLAN_AT + 4] = facts.plan_id.to_bytes(4, "big")
    header = Header(Kind.FEATURE, fragment=_BANK_WIDTH)
    frame = bytearray(addresses.frame(header.pack(bytes(body))))
    write_header(frame, flags_kind=kind, version_level_echo=VERSION << 4)
    seal(frame)
    return bytes(frame)


def _rests(templates: dict[int, bytes]) -> list[bytes]:
    """Return what follows the addresses in frames that the switch takes for ordinary ones."""
    packet = templates[Kind.SUM][ETHERNET_BYTES:]
    other = bytearray(packet)
    other[9] = _UDP
    return [
        _ARP + bytes(28),
        _IPV6 + bytes(40),
        _LLDP + bytes(40),
        _EXPERIMENT + packet,
        _VLAN + _ARP + bytes(28),
        _VLAN + b"\x08\0" + packet,
        _LLC,
        b"\x08\0" + bytes(other),
        b"\x08\0" + bytes([0x46]) + packet[1:20] + b"\x01\0\0\0" + packet[20:],
    ]


def _mac_bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))
