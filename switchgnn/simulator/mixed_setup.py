# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A plan that leaves destinations to the hosts, as the arrays of a simulation."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.pace import Pace
from switchgnn.simulator.exchange_setup import Setup
from switchgnn.simulator.host_setup import host_setup
from switchgnn.simulator.packing import Mtu


def mixed_setup(
    switch: Setup, rows: NDArray[np.int64], features: int, pace: Pace, mtu: Mtu
) -> Setup:
    """Return what one exchange takes when hosts send rows next to what the switch adds up.

    Args:
        switch: the switch's part, as `plan_setup` returns it.
        rows: int64[W, W], the rows that travel from worker a to worker b.
        features: numbers of a row.
        pace: how many frames are acknowledged together.
        mtu: bytes of the largest IP packet between hosts, or FRAGMENT.

    Returns:
        Both parts; the hosts' part alone where the switch has no blocks, and the switch's part
        alone where no rows travel.

    Raises:
        SimulatorError: packets of that size cannot be.
    """
    hosts = host_setup(rows, features, pace, mtu)
    if not switch.blocks:
        return hosts
    if not rows.any():
        return switch
    return replace(
        switch,
        arrays={**switch.arrays, **hosts.arrays},
        data_frame_bytes=max(switch.data_frame_bytes, hosts.data_frame_bytes),
        packed_frame_bytes=hosts.packed_frame_bytes,
    )
