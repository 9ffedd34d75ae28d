# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The limits of egress queues, which native/runtime/ports.h keeps.

Of a port's packets those of the highest class leave first (`standard_metadata.priority`). While
packets of lower classes wait, a class has at most a tenth of the bytes, so nobody can block a port
by packets of a high class.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

# The sums of a block to one worker; 2.6 MB of frames with 64 features each. BMv2 has 64.
DEFAULT_DEPTH = 8192
CLASSES = 8


@dataclass(frozen=True)
class QueueSettings:
    """Limits of the egress queues.

    Attributes:
        depth: packets of one class that a port's queue holds.
        rate: packets per second of ports not in ``port_rates``, attached or not, as in BMv2.
        port_rates: packets per second by port.
        bandwidth: bits per second of each attached port; other ports are unlimited, so that
            recirculation through them is not slowed.

    None is no limit; of two limits the slower one applies.
    """

    depth: int = DEFAULT_DEPTH
    rate: float | None = None
    port_rates: Mapping[int, float] = field(default_factory=dict)
    bandwidth: float | None = None

    @property
    def limited(self) -> bool:
        """Whether any port has a limit."""
        return self.rate is not None or self.bandwidth is not None or bool(self.port_rates)
