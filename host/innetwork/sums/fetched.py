# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Features that were fetched: they serve all blocks of their round."""

import numpy as np
from numpy.typing import NDArray

# int32[32] by vertex.
Features = dict[int, NDArray[np.int32]]


class FetchedFeatures:
    """What one worker has fetched in the round that is under way (paper, section 3.4)."""

    def __init__(self) -> None:
        self._round = 0
        self._by_fragment: dict[int, Features] = {}

    def of(self, round_number: int, fragment: int) -> Features:
        """Return those of a fragment, to look at and to add to.

        Those of other rounds are forgotten, so no more are held than one round has.

        Args:
            round_number: the round, from 1, growing.
            fragment: the slice of the features, from 0.
        """
        if round_number != self._round:
            self._round, self._by_fragment = round_number, {}
        return self._by_fragment.setdefault(fragment, {})
