# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a switch has, as far as a plan depends on it."""

from collections.abc import Sequence
from dataclasses import dataclass

from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.presets import SLOT_BYTES
from switchgnn.profiles.errors import ProfileError

_MEGA, _GIGA = 1e6, 1e9
_BITS = 8


@dataclass(frozen=True)
class SwitchProfile:
    """A switch. None is no limit.

    Attributes:
        name: how it is called.
        banks: one of BANKS_OF_SWITCHES: to how many slots one pass can add.
        slot_bytes: of the registers that hold features: 128 bytes are a slot.
        table_bytes: the most that its tables may take together.
        passes_per_second: of its loop: passes but the first of each packet, of all pipelines.
        ports: to which something can be attached.
        port_gbits: Gbit/s of each port, in each direction.
        program_sizes: its tables and registers are as large as `p4src/sizes.p4` says.
        frame_seconds: of the processor of a software switch, for each frame that it receives.
        host_frame_seconds: of a host's processor, for each frame that it sends or receives in an
            exchange over the switch.
        host_exchange_seconds: of a host's processor for an exchange between hosts, whose frames
            are few and long.
        barrier_seconds: that a barrier takes beside frames and links.
    """

    name: str
    banks: int = BANKS
    slot_bytes: int | None = None
    table_bytes: int | None = None
    passes_per_second: float | None = None
    ports: int | None = None
    port_gbits: float | None = None
    program_sizes: bool = False
    frame_seconds: float | None = None
    host_frame_seconds: float | None = None
    host_exchange_seconds: float | None = None
    barrier_seconds: float | None = None

    @property
    def slots(self) -> int | None:
        """How many slots it has room for."""
        return None if self.slot_bytes is None else self.slot_bytes // SLOT_BYTES

    @property
    def bandwidth(self) -> float | None:
        """Mbit/s of a port in each direction."""
        return None if self.port_gbits is None else self.port_gbits * _GIGA / _MEGA

    def frames_per_second(self, frame_bytes: int) -> float | None:
        """Return how many frames of that size a port carries in each direction."""
        if self.port_gbits is None:
            return None
        return self.port_gbits * _GIGA / (_BITS * frame_bytes)

    def check_attached(self, attached: int, bandwidth: float | None = None) -> None:
        """Check that links can be attached.

        Args:
            attached: workers and other switches.
            bandwidth: Mbit/s of each link; None: that of the ports.

        Raises:
            ProfileError: it has fewer ports, or slower ones.
        """
        if self.ports is not None and attached > self.ports:
            raise ProfileError(
                f"The switch {self.name} has {self.ports} ports, and {attached} links end there: "
                "plan for fewer workers, for more leaves, or for another switch (--switch)."
            )
        if self.bandwidth is not None and bandwidth is not None and bandwidth > self.bandwidth:
            raise ProfileError(
                f"A port of the switch {self.name} has {self.bandwidth:,g} Mbit/s, and the links "
                f"have {bandwidth:,g}: give a lower --bandwidth, or another switch (--switch)."
            )


def most_attached(leaf_spine: LeafSpine | None, workers: int) -> int:
    """Return how many links end at the switch that has most of them."""
    if leaf_spine is None:
        return workers
    leaves: Sequence[int] = leaf_spine.leaf_of_worker
    fullest = max(leaves.count(leaf) for leaf in set(leaves))
    return max(fullest + leaf_spine.spines, leaf_spine.leaves)


# Whatever is asked of it, it has: in simulations what is assumed if nothing is said.
UNLIMITED = SwitchProfile("unlimited")
