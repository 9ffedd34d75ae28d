# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker that repairs nothing: the cost of recovery is measured against it.

It sends the same frames within the same window, which the acknowledgements open, and
meets at the same barriers. It records no times and no bits, and repeats no request.
"""

import sys

from bench.errors import BenchError
from switchgnn.host.innetwork import block
from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.innetwork.receiver import HERE, SumReceiver
from switchgnn.host.innetwork.sender import FeatureSender
from switchgnn.host.wire.header import BODY_AT, FRAGMENT_BYTES, Header
from switchgnn.host.worker import WorkerTask, run_worker

COMMAND = (sys.executable, "-m", "bench.loads.bare_worker")
# This is longer than any answer takes, so no timer ever ends.
_NEVER = 60.0


class BareSender(FeatureSender):
    """Takes each acknowledgement as one of the whole group."""

    def take_ack(self, group: int, count: int, now: float, *, marked: bool = False) -> bool:
        """Open the window.

        Args:
            group: which one the switch has.
            count: ignored.
            now: ignored.
            marked: whether the window may not grow.

        Returns:
            Whether it is news.
        """
        if group not in self._waiting:
            return False
        size = self._size(group)
        self._waiting.discard(group)
        self._confirmed += size
        if not marked:
            self._congestion.acknowledged(size)
        return True

    def repeat_what_is_late(self, now: float) -> None:
        """Do nothing, since nothing is ever late."""

    def next_timer(self, now: float) -> float:
        """Return a time so long that no timer ends."""
        return _NEVER

    def _note_asked(self, first: int, end: int, now: float) -> None:
        pass


class BareReceiver(SumReceiver):
    """Takes the sums that arrive."""

    def take_sum(self, header: Header, frame: memoryview, now: float) -> bool:
        """Keep a complete sum.

        Args:
            header: the header of the frame.
            frame: the frame.
            now: the time in seconds.

        Returns:
            True, since each sum is new.

        Raises:
            BenchError: the sum is not complete, which nothing here could repair.
        """
        place = self._schedule.receive_place[header.dst_id]
        if header.count != self._schedule.receive_count[place]:
            raise BenchError(f"The sum of vertex {header.dst_id} is not whole.")
        self._tally.sums_received += 1
        at = place * FRAGMENT_BYTES
        self._staging[at : at + FRAGMENT_BYTES] = frame[BODY_AT : BODY_AT + FRAGMENT_BYTES]
        self._awaited[place] = HERE
        self._left -= 1
        return True

    def ask_for_what_is_late(self, now: float) -> bool:
        """Return False, since nothing is ever late."""
        return False

    def next_timer(self, now: float) -> float:
        """Return a time so long that no timer ends."""
        return _NEVER


def main() -> None:
    """Do the task on standard input, as `switchgnn worker` does."""
    block.FeatureSender = BareSender  # type: ignore[misc]
    InNetworkExchange._receiver = BareReceiver
    run_worker(WorkerTask.from_json(sys.stdin.readline()))


if __name__ == "__main__":
    main()
