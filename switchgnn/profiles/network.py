# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What exchanges around a switch are predicted on."""

from switchgnn.planner.costs.seconds import Network
from switchgnn.profiles.profile import SwitchProfile

_MEGA = 1e6
_DEFAULT = Network()


def network_of(
    profile: SwitchProfile,
    *,
    bits_per_second: float | None,
    delay: float = _DEFAULT.delay,
    loop: float | None = None,
    mtu: int = _DEFAULT.mtu,
    window: int = _DEFAULT.window,
    cores: int | None = None,
) -> Network:
    """Describe a star of workers around a switch.

    Args:
        profile: of the switch, with what was measured of it and of hosts.
        bits_per_second: of each link; None: that of the switch's ports, or 100 Gbit/s.
        delay: seconds from one end of a link to the other.
        loop: passes per second of the switch; None: no limit.
        mtu: bytes of the largest IP packet between hosts.
        window: features in flight at most.
        cores: that all hosts and the switch share; None: each has its own.

    Returns:
        Links, switch and processors.
    """
    own = _DEFAULT.bits_per_second if profile.bandwidth is None else profile.bandwidth * _MEGA
    return Network(
        bits_per_second=own if bits_per_second is None else bits_per_second,
        delay=delay,
        passes_per_second=loop,
        host_frame=profile.host_frame_seconds or 0.0,
        switch_frame=profile.frame_seconds or 0.0,
        barrier=profile.barrier_seconds or 0.0,
        mtu=mtu,
        window=window,
        cores=cores,
    )
