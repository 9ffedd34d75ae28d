# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Mistakes that drawn scenarios find, and how many of them it takes at most."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """A mistake in the product.

    Attributes:
        name: for `pytest -k`.
        what: the mistake in a few words, without a full stop.
        file: the file of the product.
        old: what stands there, exactly once.
        new: what stands there with the mistake.
        within: how many scenarios around one switch, from seed 0, find it.
    """

    name: str
    what: str
    file: str
    old: str
    new: str
    within: int


BLOCK, BARRIER = "host/innetwork/block.py", "host/innetwork/barrier.py"
RECEIVER, WATCH = "host/innetwork/receiver.py", "controller/watch.py"
MISTAKES = (
    Mistake(
        "scale",
        "a worker scales with its own largest feature",
        "host/innetwork/exchange.py",
        "magnitude_from_bits(largest.bits)\n        )\n        self._check",
        "magnitude_from_bits(own)\n        )\n        self._check",
        10,
    ),
    Mistake(
        "recall",
        "a sum that does not come is never asked for",
        RECEIVER,
        "if not self._left or now - self._quiet_since < self._patience(now):",
        "if self._left or not self._left:",
        10,
    ),
    Mistake(
        "probe",
        "an acknowledgement that does not come is never asked for",
        "host/innetwork/sender.py",
        "            if now > due:",
        "            if now > due > now:",
        10,
    ),
    Mistake(
        "checksum",
        "hosts compare no checksum",
        "host/wire/header.py",
        "    if zlib.crc32(frame[BODY_AT:end], checked) != checksum:",
        "    if zlib.crc32(frame[BODY_AT:end], checked) != checksum and not checked:",
        60,
    ),
    Mistake(
        "place",
        "an answer of the barrier counts for another block of its round",
        BARRIER,
        "if header.kind not in (Kind.ADVANCE, Kind.WAITING) or here != place:",
        "if header.kind not in (Kind.ADVANCE, Kind.WAITING) or here[0] != place[0]:",
        60,
    ),
    Mistake(
        "fragment",
        "a worker takes sums of another fragment of the block",
        BLOCK,
        "        if (header.round, header.block_id, header.fragment) != under_way.place:",
        "        if (header.round, header.block_id) != under_way.place[:2]:",
        60,
    ),
    Mistake(
        "first-source",
        "a sum that a worker adds up lacks its first source",
        RECEIVER,
        "        for source in self._schedule.neighbours_of(place):\n            total",
        "        for source in self._schedule.neighbours_of(place)[1:]:\n            total",
        60,
    ),
    Mistake(
        "fetch",
        "what a switch cannot complete is never fetched",
        RECEIVER,
        "            self._start_fetching(place, doubt)\n        return False",
        "            doubt.fetching = False\n        return False",
        60,
    ),
    Mistake(
        "restore",
        "a switch that restarts is not given its plan again",
        WATCH,
        "                self._restore()",
        "                lost.clear()",
        60,
    ),
    Mistake(
        "session-forgotten",
        "a switch that restarts does not join the session of the workers",
        WATCH,
        "        report = self.bring(self._session)",
        "        report = self.bring(None)",
        60,
    ),
    Mistake(
        "any-turn",
        "a switch that joins a session waits for its opening",
        "controller/install.py",
        "any_turn=here.any_turn if here.session == serving else 1",
        "any_turn=0",
        60,
    ),
    Mistake(
        "sessions",
        "a worker takes packets of other sessions",
        "host/innetwork/inbox.py",
        "if header.session != self._session and header.kind is not Kind.WAITING:",
        "if header.session > SESSION_MASK and header.kind is not Kind.WAITING:",
        80,
    ),
    Mistake(
        "repeat-done",
        "who is in a block does not repeat that it was done",
        BLOCK,
        "            if asked or now > beat_at:",
        "            if asked and now < 0.0:",
        80,
    ),
    Mistake(
        "silent",
        "who waits in vain names those that are done",
        "host/innetwork/signs.py",
        "            if not done >> worker & 1\n        }",
        "            if done >> worker & 1\n        }",
        80,
    ),
    Mistake(
        "kept",
        "packets that came early are kept for good",
        "host/innetwork/inbox.py",
        "        self._kept.clear()\n",
        "",
        100,
    ),
)
