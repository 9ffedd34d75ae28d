# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The features of each round of `switchgnn run`.

Every round has other features, so that a sum left over from an earlier round
cannot pass for a right one.
"""

import numpy as np
from numpy.typing import NDArray


def features_of_round(features: NDArray[np.float32], index: int) -> NDArray[np.float32]:
    """Return the features of the round with this index, from 0.

    Args:
        features: float32[n, F].
        index: 0 gives the features themselves; later rounds shift the columns and
            change scale and sign.
    """
    scale = np.float32((-1) ** index * (1 + index / 4))
    return np.ascontiguousarray(np.roll(features, index, axis=1) * scale)
