# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Fires shots at a switch, never more at once than its ports hold."""

import threading
from collections.abc import Callable, Sequence

from switchgnn.host.wire.link import Link
from switchgnn.lab.virtual.byzantine import Shot
from tests.fuzz.packets import ping
from tests.support.speed import Deadline

_ECHO_SECONDS = 20.0
# BMv2 reads a port through a ring of about 30 frames.
VOLLEY = 16


class Attacker(threading.Thread):
    """A thread on a port of its own that waits for an echo after each volley."""

    def __init__(
        self,
        link: Link,
        ears: Link,
        mac: str,
        shots: Sequence[Shot],
        session: int,
        round_number: Callable[[], int],
    ) -> None:
        super().__init__(daemon=True)
        self.sent = 0
        self.error: Exception | None = None
        self._link, self._ears = link, ears
        self._mac = mac
        self._shots = shots
        self._session = session
        self._round_number = round_number

    def run(self) -> None:
        try:
            for first in range(0, len(self._shots), VOLLEY):
                self._fire(self._shots[first : first + VOLLEY])
        except Exception as error:  # the test reports it
            self.error = error

    def _fire(self, volley: Sequence[Shot]) -> None:
        now = self._round_number()
        for shot in volley:
            self._link.send(shot.aim(self._session, now))
        self.sent += len(volley) + 1
        echo(self._link, self._ears, self._mac, self.sent)


def echo(link: Link, ears: Link, mac: str, number: int) -> None:
    """Return when everything sent on the link has passed the switch's ingress."""
    question = ping(mac, number)
    link.send(question)
    deadline = Deadline(_ECHO_SECONDS)
    while not deadline.is_over():
        frame = ears.receive(1.0)
        if frame is not None and frame == question:
            return
    raise TimeoutError(f"no echo of frame {number}")
