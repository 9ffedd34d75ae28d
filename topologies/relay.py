"""``python -m switchgnn.topologies.relay CABLE LOWER UPPER ...``: cables with faults on them.

It forwards frames between the two ends of each cable, an ``eth:INTERFACE`` or a
``udp:HOST:PORT:PEER_HOST:PEER_PORT``. It prints ``ready`` and answers each line of its input:
``faults TEXT``, as for ``switchgnn run --faults``, with ``set``; ``record FILES``, JSON with the
file of each cable, with ``recording``; ``count`` with the counters since then, as a line of JSON.
It ends with its input. Faults apply only to the packets of exchanges, as on workers' links.
"""

import json
import os
import select
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from switchgnn.host.links.faults import Faults, FaultyDirection
from switchgnn.host.links.recording import Recording
from switchgnn.host.wire.header import ETHERNET_BYTES, ETHERTYPE_IPV4, IPV4_BYTES
from switchgnn.softswitch.base.ports import Port, open_ports, parse_port

# For experiments, RFC 3692: the switch's packets, and those of exchanges without it.
_PROTOCOLS = (253, 254)
_IPV4 = ETHERTYPE_IPV4.to_bytes(2, "big")
_ETHERTYPE_AT, _PROTOCOL_AT = slice(12, 14), ETHERNET_BYTES + 9
_COMMANDS = sys.stdin.fileno()
_LONGEST_LINE = 1 << 16
# Frames taken from one cable before the next one has its turn.
_TURN = 64
# A delayed frame that no other has overtaken is sent after this time.
_QUIET_SECONDS = 0.002


class _CableDirection:
    """One direction of a cable."""

    def __init__(self, cable: str, direction: str, source: Port, target: Port) -> None:
        self._cable, self._direction = cable, direction
        self._source, self._target = source, target
        self._taken: Recording | None = None
        self._given: Recording | None = None
        self.due: float | None = None
        self.disturb(Faults())

    def disturb(self, faults: Faults) -> None:
        """Inject these faults from now on; release the frames that were delayed."""
        if self.due is not None:
            self.release()
        self._faulty = FaultyDirection(faults, self._cable, self._direction)
        self.taken = self.given = self.frames = 0

    def record(self, *, taken: Recording | None = None, given: Recording | None = None) -> None:
        """Record the frames from now on, as received (`taken`) or as sent on (`given`)."""
        self._taken, self._given = taken, given

    def carry(self) -> None:
        """Forward the frames that have arrived, up to a turn, subject to faults."""
        for _ in range(_TURN):
            try:
                frame = self._source.receive(self._source.frame_bytes)
            except BlockingIOError:
                break
            except OSError:
                # An earlier frame found no switch at the end of the cable.
                continue
            self.taken += len(frame)
            self.frames += 1
            if self._taken is not None:
                self._taken.add((frame,))
            for each in self._faulty.disturb(frame) if _exchanged(frame) else (frame,):
                self._give(each)
        self.due = time.monotonic() + _QUIET_SECONDS if self._faulty.holds else None

    def release(self) -> None:
        """Send the delayed frames."""
        self.due = None
        for frame in self._faulty.release():
            self._give(frame)

    def counts(self) -> dict[str, int]:
        """Return the faults so far."""
        return asdict(self._faulty.counts)

    def _give(self, frame: bytes) -> None:
        if self._given is not None:
            self._given.add((frame,))
        if self._target.send(frame):
            self.given += len(frame)


class _Cable:
    """A cable between two switches, both directions."""

    def __init__(self, name: str, lower: str, upper: str) -> None:
        specs = [parse_port(f"{end}={link}") for end, link in enumerate((lower, upper))]
        ports = open_ports(specs)
        self.name = name
        self.up = _CableDirection(name, "up", ports[0], ports[1])
        self.down = _CableDirection(name, "down", ports[1], ports[0])
        self.directions = {ports[0].fileno(): self.up, ports[1].fileno(): self.down}

    def disturb(self, faults: Faults) -> None:
        for direction in (self.up, self.down):
            direction.disturb(faults)

    def record(self, recording: Recording) -> None:
        """Record the frames that the upper switch sends and receives."""
        self.up.record(given=recording)
        self.down.record(taken=recording)

    def counts(self) -> dict[str, Any]:
        """Return the counters of the upper switch's end, and the faults by direction."""
        return {
            "up": self.up.given,
            "down": self.down.taken,
            "frames": {"up": self.up.frames, "down": self.down.frames},
            "faults": {"up": self.up.counts(), "down": self.down.counts()},
        }


class _Relay:
    """All cables; executes the commands of the parent."""

    def __init__(self, cables: Sequence[_Cable]) -> None:
        self._cables = cables
        self._directions = dict(each for cable in cables for each in cable.directions.items())

    def serve(self) -> None:
        """Forward until the input ends."""
        ready = select.poll()
        for number in (_COMMANDS, *self._directions):
            ready.register(number, select.POLLIN)
        while True:
            dues = [each.due for each in self._directions.values() if each.due is not None]
            wait = max(0.0, min(dues) - time.monotonic()) * 1000 if dues else None
            for number, _ in ready.poll(wait):
                if number != _COMMANDS:
                    self._directions[number].carry()
                elif not self._obey(os.read(_COMMANDS, _LONGEST_LINE).decode()):
                    return
            now = time.monotonic()
            for direction in self._directions.values():
                if direction.due is not None and direction.due <= now:
                    direction.release()

    def _obey(self, said: str) -> bool:
        for line in said.splitlines():
            command, _, argument = line.partition(" ")
            if command == "faults":
                faults = Faults.parse(argument)
                for cable in self._cables:
                    cable.disturb(faults)
                _say("set")
            elif command == "record":
                files = json.loads(argument)
                for cable in self._cables:
                    cable.record(Recording(Path(files[cable.name])))
                _say("recording")
            elif command == "count":
                _say(json.dumps({cable.name: cable.counts() for cable in self._cables}))
        return bool(said)


def _exchanged(frame: bytes) -> bool:
    return (
        len(frame) >= ETHERNET_BYTES + IPV4_BYTES
        and frame[_ETHERTYPE_AT] == _IPV4
        and frame[_PROTOCOL_AT] in _PROTOCOLS
    )


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main() -> None:
    """Serve the lines of standard input."""
    words = sys.argv[1:]
    relay = _Relay(
        [_Cable(*each) for each in zip(words[::3], words[1::3], words[2::3], strict=True)]
    )
    _say("ready")
    relay.serve()


if __name__ == "__main__":
    main()
