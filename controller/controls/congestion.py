# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""congestion.p4: the threshold at which packets are marked."""

from switchgnn.controller.p4runtime.layout import Layout, Table
from switchgnn.controller.p4runtime.rows import decode_default, encode_default

CONGESTION_ACTION = "set_threshold"
DEFAULT_ECN_THRESHOLD = 32  # packets; half of a queue of BMv2


class Congestion:
    """The threshold table; it has no key, its default action is the setting."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("threshold")

    def encode(self, threshold: int) -> bytes:
        """Return the default action for a threshold in packets."""
        return encode_default(self.table, CONGESTION_ACTION, {"threshold": threshold})

    def decode(self, default: bytes) -> int:
        """Return the threshold, in packets, in a default action."""
        return decode_default(self.table, CONGESTION_ACTION, default)["threshold"]
