# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The addresses of the first worker and of its switch, and a link that leads nowhere."""

from switchgnn.base.network import Station
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import unpack_header

WORKER = Station("02:00:00:00:00:01", "10.0.0.1")
SWITCH = Station("02:00:00:00:ff:fe", "10.0.255.254")
ADDRESSES = Addresses(WORKER, SWITCH)
# Of the workers of a model switch.
SESSION = 1


class Recorder:
    """A link that keeps the headers of what is sent."""

    name = "nowhere"

    def __init__(self):
        self.sent = []

    def send(self, frame):
        self.sent.append(unpack_header(frame))

    def send_rows(self, rows, first, count):
        for place in range(first, first + count):
            self.send(rows.frame(place))
