# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Answers other workers' fetches from this round's features."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.wire.header import Header, Kind

# The slice of each row in a fragment, by the word of the fragment.
Fragments = Mapping[int, NDArray[np.int32]]


class Responder:
    """Holds the fixed-point features of the current round.

    Args:
        endpoint: this worker.
        vertices: int64[n], the worker's vertices, ascending.
    """

    def __init__(self, endpoint: Endpoint, vertices: NDArray[np.int64]) -> None:
        self._endpoint = endpoint
        self._tally = endpoint.tally
        self._row = {int(vertex): row for row, vertex in enumerate(vertices)}
        self._round = 0
        self._blocks = range(0)
        self._lanes: Fragments = {}

    def serve(self, round_number: int, blocks: range, lanes: Fragments) -> None:
        """Serve this round's features from now on.

        Args:
            round_number: the round.
            blocks: the blocks of the round. A worker that asks in another block sums in
                another direction, and gets no answer.
            lanes: int32[n, W] for each fragment, by its word.
        """
        self._round, self._blocks, self._lanes = round_number, blocks, lanes

    def answer(self, request: Header) -> None:
        """Send the feature that a fetch asks for, if it is of this round."""
        row = self._row.get(request.src_id)
        if row is None or request.round != self._round:
            self._tally.late += 1
            return
        if request.block_id not in self._blocks or request.fragment not in self._lanes:
            self._tally.wrong += 1
            return
        header = Header(
            kind=Kind.FEATURE,
            src_id=request.src_id,
            dst_id=request.dst_id,
            block_id=request.block_id,
            count=1,
            resend=True,
            fragment=request.fragment,
            round=request.round,
        )
        body = self._lanes[request.fragment][row].astype(">i4").tobytes()
        self._endpoint.send(header, body)
        self._tally.features_served += 1
