"""A worker that repairs nothing: the cost of recovery is measured against it.

It sends the same frames within the same window and at the same pace, which the acknowledgements
set, takes sums the same way, and meets at the same barriers. It never looks for what is late.
"""

import sys

from switchgnn.host.innetwork import units
from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.innetwork.receiver import SumReceiver
from switchgnn.host.innetwork.sender import FeatureSender
from switchgnn.host.worker import run

COMMAND = (sys.executable, "-m", "bench.loads.bare_worker")
# This is longer than any answer takes, so no timer ever ends.
_NEVER = 60.0


class BareSender(FeatureSender):
    """Takes each acknowledgement as one of the whole group."""

    def take_ack(self, group: int, count: int, now: float) -> bool:
        """Open the window.

        Args:
            group: which one the switch has.
            count: ignored.
            now: the time, in seconds of the endpoint's clock.
        """
        if group not in self._waiting:
            return False
        size = self._size(group)
        # The pace follows from the round trip: without it the window would never open wide.
        if asked_at := self._asked_at[group]:
            self._round_trip.measured(now - asked_at)
        self._waiting.discard(group)
        self._confirmed += size
        self._congestion.acknowledged(size)
        return True

    def repeat_what_is_late(self, now: float) -> None:
        """Do nothing, since nothing is ever late."""

    def next_timer(self, now: float) -> float:
        """Return a time so long that no timer ends."""
        return _NEVER


class BareReceiver(SumReceiver):
    """Takes the sums that arrive, and asks for none."""

    def ask_for_what_is_late(self, now: float) -> bool:
        """Return False, since nothing is ever late."""
        return False

    def next_timer(self, now: float) -> float:
        """Return a time so long that no timer ends."""
        return _NEVER


def main() -> None:
    """Do the task on standard input, as `switchgnn worker` does."""
    units.FeatureSender = BareSender  # type: ignore[misc]
    InNetworkExchange._receiver = BareReceiver
    run(sys.stdin.readline())


if __name__ == "__main__":
    main()
