# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How large the flows of the background are: those of Hadoop in a data centre.

Roy et al., "Inside the Social Network's (Datacenter) Network", SIGCOMM 2015, measured them. The
points are those that simulations take, as HPCC (Li et al., SIGCOMM 2019) published them with its
artifact: github.com/alibaba-edu/High-Precision-Congestion-Control,
traffic_gen/FbHdp_distribution.txt. Between two points the distribution is linear.
"""

import numpy as np
from numpy.typing import NDArray

# (bytes, per cent of the flows that have no more).
HADOOP = (
    (0, 0.0),
    (100, 1.0),
    (200, 2.0),
    (300, 5.0),
    (350, 15.0),
    (400, 20.0),
    (500, 30.0),
    (600, 40.0),
    (700, 50.0),
    (1_000, 60.0),
    (2_000, 67.0),
    (7_000, 70.0),
    (30_000, 72.0),
    (50_000, 82.0),
    (80_000, 87.0),
    (120_000, 90.0),
    (300_000, 95.0),
    (1_000_000, 97.5),
    (2_000_000, 99.0),
    (10_000_000, 100.0),
)
_PER_CENT = 100


def flow_size_arrays() -> dict[str, NDArray[np.float64]]:
    """Return the points as `models/flow_sizes.h` reads them; shares from 0 to 1."""
    size, share = np.array(HADOOP, dtype=np.float64).T
    return {"flow_bytes": size.copy(), "flow_share": share / _PER_CENT}
