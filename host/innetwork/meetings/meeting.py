# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One barrier that a worker waits at: when it asks again, and for how long it waits."""

from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.meetings.signs import SignsOfLife
from switchgnn.host.wire.header import OPENING_BLOCK, BarrierBody, Header, Kind


class Meeting:
    """A barrier of all workers, from the first `done` of this one to its `advance`.

    Args:
        endpoint: this worker.
        workers: the number of workers.
        place: the round, the block and the word of the fragment.

    Attributes:
        place: the same.
        patience: seconds that a worker may be silent.
        repeat_at: when the `done` is due, in seconds of the endpoint's clock.
        answer: the `advance`; None until it comes.
    """

    def __init__(self, endpoint: Endpoint, workers: int, place: tuple[int, int, int]) -> None:
        self._pace = endpoint.pace
        self._round_trip = endpoint.round_trip
        self._tally = endpoint.tally
        self.place = place
        # Before they open a round, workers may be computing.
        self.patience = self._pace.patience + self._pace.skew * (place[1] == OPENING_BLOCK)
        self.repeat_at = float("-inf")
        self.answer: tuple[Header, BarrierBody] | None = None
        self._signs = SignsOfLife(workers)
        self._attempts = 0
        # The first `done` is not answered while others are not done.
        self._unanswered = -1
        self._deadline = endpoint.clock.now() + self._pace.patience

    @property
    def answered(self) -> tuple[Header, BarrierBody]:
        """The `advance`, where it has come.

        Raises:
            ValueError: it has not.
        """
        if self.answer is None:
            raise ValueError("the barrier is not complete")
        return self.answer

    def silent(self, now: float) -> list[int]:
        """Return the workers that are not done and have given no sign of life for too long."""
        return self._signs.silent(self.patience, now)

    def unheard(self, now: float) -> bool:
        """Tell whether the switch has not answered for too long."""
        return now > self._deadline

    def asked(self, now: float) -> None:
        """Take note of a `done` that has left."""
        self.repeat_at = now + min(self._round_trip.backed_off(self._attempts), self._pace.beat)
        self._tally.barriers_repeated += self._attempts > 0
        self._attempts += 1
        self._unanswered += 1

    def heard(self, header: Header, barrier: BarrierBody, now: float) -> None:
        """Take an answer that refuses nothing.

        Args:
            header: of the packet.
            barrier: its body.
            now: the time, in seconds of the endpoint's clock.
        """
        if self._unanswered > 0:
            self._round_trip.took(self._unanswered)
        self._unanswered = 0
        if header.kind is Kind.WAITING:
            self._attempts = self._round_trip.answered(self._attempts)
            self._signs.take(barrier.workers, barrier.pulses or 0, now)
            if self._signs.awaited:
                self._deadline = now + self._pace.patience
        elif self.place[1] != OPENING_BLOCK or barrier.round == self.place[0]:
            self.answer = header, barrier
