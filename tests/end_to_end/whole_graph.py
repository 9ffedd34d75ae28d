# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The sums of all workers beside one product with the whole graph's matrix."""

import numpy as np


def wrong_elements(plan, matrix, features, result):
    """How many sums differ from `matrix` @ features, in the fixed point of the exchange.

    `result` has the remote sums of each worker; its own edges are added here.
    """
    scale = result[0].fixed_point.scale
    fixed = np.rint(features.astype(np.float64) * scale).astype(np.int64)
    got = np.zeros(features.shape, dtype=np.int64)
    for part in plan.workers:
        own = part.vertices
        got[own] = result[part.worker].values + matrix.tocsr()[own][:, own] @ fixed[own]
    return int((got != matrix @ fixed).sum())
