# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The usual normalisation of bag-of-words features."""

import numpy as np
from numpy.typing import NDArray


def normalize_rows(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Make each row sum to 1, as NormalizeFeatures of PyTorch Geometric does.

    The smallest of all numbers is subtracted from each; rows whose sum is then below 1 are
    not scaled, so a row of zeros stays one.

    Args:
        features: float32[V, F], not changed.

    Returns:
        float32[V, F].
    """
    shifted: NDArray[np.float32] = features - features.min(initial=np.inf)
    shifted /= np.maximum(shifted.sum(axis=1, keepdims=True), np.float32(1))
    return shifted
