"""Sends the features of one unit, and repeats what the switch lacks of them."""

from collections import deque

from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.wire.batches import FrameRows

_BURST = 64
# GROUPS_PER_WORKER of p4src/dedup.p4.
_GROUPS_APART = 32
_OVERTAKEN = float("inf")


class FeatureSender:
    """Sends the features of one unit to the switch; all of a worker share window and rate."""

    def __init__(self, endpoint: Endpoint, rows: FrameRows) -> None:
        self._link = endpoint.link
        self._rows = rows
        self._total = rows.count
        self._group_size = endpoint.pace.group_size
        self._congestion = endpoint.congestion
        self._round_trip = endpoint.round_trip
        self._counters = endpoint.counters
        groups = -(-self._total // self._group_size)
        self._waiting = set(range(groups))
        self._first_waiting = 0
        self._asked_at = [0.0] * groups
        self._attempts = [0] * groups
        self._accepted = [0] * groups
        self._sent = 0
        self._confirmed = 0
        # Answers to later questions than the last one about each group.
        self._overtaken = [0] * groups
        self._nothing_late_before = 0.0
        self._again: deque[int] = deque()
        # Of groups asked about again: minus the time of the first question, and with the answer the
        # seconds in between. _OVERTAKEN: a later question was answered before.
        self._doubtful: dict[int, float] = {}

    @property
    def done(self) -> bool:
        """Whether all features are acknowledged."""
        return not self._waiting

    @property
    def share(self) -> float:
        """The share of acknowledged features."""
        return self._confirmed / max(1, self._total)

    @property
    def unconfirmed(self) -> int:
        """The number of unacknowledged features."""
        return self._total - self._confirmed

    @property
    def all_sent(self) -> bool:
        """Whether each feature was sent at least once."""
        return self._sent == self._total

    @property
    def in_flight(self) -> int:
        """How many features were sent and are not acknowledged."""
        return self._sent - self._confirmed

    def send_some(self, now: float, in_flight: int) -> bool:
        """Send what window and rate allow, at most a burst; return whether more may go.

        `in_flight`: features of all units.
        """
        allowed = self._congestion.allowance(in_flight, now)
        while self._again and allowed > -self._group_size:
            # Repeated features are in flight already, so they may exceed the window.
            index = self._again.popleft()
            self._link.send(self._rows.frame(index))
            if (index + 1) % self._group_size == 0 or index + 1 == self._total:
                self._asked_at[index // self._group_size] = now
            self._counters.features_resent += 1
            allowed -= 1
        # The switch keeps only that many groups of a worker apart.
        furthest = min(self._total, (self._first() + _GROUPS_APART) * self._group_size)
        ready = max(0, min(allowed, furthest - self._sent))
        burst = min(ready, _BURST)
        if burst:
            self._link.send_rows(self._rows, self._sent, burst)
            self._note_asked(self._sent, self._sent + burst, now)
        self._sent += burst
        self._counters.features_sent += burst
        self._congestion.sent(burst)
        return burst < ready

    def take_ack(self, group: int, count: int, now: float) -> bool:
        """Take an acknowledgement; return whether it is news."""
        if group not in self._waiting:
            # The first answer was not to the repetition, so none was lost, as with TCP's D-SACK
            # (RFC 3708).
            if (seconds := self._doubtful.pop(group, 0.0)) == _OVERTAKEN:
                self._round_trip.not_lost()
            elif seconds:
                self._round_trip.measured(seconds)
            return False
        size = self._size(group)
        if asked_at := self._asked_at[group]:
            if self._attempts[group] == 0:
                self._round_trip.measured(now - asked_at)
            self._ask_if_overtaken(group, now)
        if count < size:
            self._repeat(group, now)
            # A queue that overflows drops many in a row.
            if 2 * (size - count) >= self._group_size:
                self._congestion.lost(now)
            else:
                self._congestion.missed(size - count)
            news = count > self._accepted[group]
            self._accepted[group] = count
            return news
        if group in self._doubtful:
            self._doubtful[group] += _OVERTAKEN if self._overtaken[group] else now
        if self._attempts[group]:
            # Another one is the last now, or none.
            self._nothing_late_before = now
        self._round_trip.took(self._attempts[group] + 1)
        self._waiting.discard(group)
        self._confirmed += size
        self._congestion.acknowledged(size)
        return True

    def repeat_what_is_late(self, now: float) -> None:
        """Ask again about the last group if its acknowledgement is overdue.

        Its answer shows which earlier ones were lost; the switch may only be slow.
        """
        if now < self._nothing_late_before:
            return
        self._nothing_late_before = float("inf")
        if not (asked := self._asked(len(self._accepted))):
            return
        last = max(asked, key=lambda group: (self._asked_at[group], group))
        # An answer ends the backing off.
        attempts = max(0, self._attempts[last] - (self._accepted[last] > 0))
        due = self._asked_at[last] + self._round_trip.probe(attempts)
        if now > due:
            self._ask(last, now)
            due = now + self._round_trip.probe(attempts + 1)
        self._nothing_late_before = due

    def next_timer(self, now: float) -> float:
        """Return the seconds until something may be overdue."""
        return max(0.0, self._nothing_late_before - now)

    def _ask_if_overtaken(self, group: int, now: float) -> None:
        """Ask again about groups that the answer of a later question shows lost (RFC 8985, 6.2)."""
        asked_at, again = self._asked_at[group], self._attempts[group] > 0
        # The answer may be that to an earlier question.
        if again and now - asked_at < self._round_trip.smoothed / 2:
            return
        for other in self._asked(len(self._accepted) if again else group):
            if (self._asked_at[other], other) < (asked_at, group):
                self._overtaken[other] += 1
                later = asked_at - self._asked_at[other]
                if self._round_trip.overtaken(self._overtaken[other], later):
                    self._ask(other, now)

    def _asked(self, end: int) -> list[int]:
        """Return the groups below `end` that were asked about and are not acknowledged."""
        first = self._first()
        groups = range(first, min(end, first + _GROUPS_APART))
        return [group for group in groups if group in self._waiting and self._asked_at[group]]

    def _ask(self, group: int, now: float) -> None:
        if self._attempts[group] == 0:
            overtaken = self._overtaken[group] > 0
            self._doubtful[group] = _OVERTAKEN if overtaken else -self._asked_at[group]
        self._attempts[group] += 1
        self._asked_at[group], self._overtaken[group] = now, 0
        self._link.send(self._rows.frame(group * self._group_size + self._size(group) - 1))
        self._counters.probes += 1

    def _first(self) -> int:
        while self._waiting and self._first_waiting not in self._waiting:
            self._first_waiting += 1
        return self._first_waiting

    def _repeat(self, group: int, now: float) -> None:
        self._attempts[group] = 1
        self._asked_at[group], self._overtaken[group] = now, 0
        self._nothing_late_before = now
        first = group * self._group_size
        indices = range(first, first + self._size(group))
        queued = set(self._again)
        self._again.extend(index for index in indices if index not in queued)

    def _note_asked(self, first: int, end: int, now: float) -> None:
        self._nothing_late_before = min(self._nothing_late_before, now + self._round_trip.probe())
        size = self._group_size
        asked = range(first // size, end // size + (end == self._total and end % size > 0))
        for group in asked:
            self._asked_at[group] = now

    def _size(self, group: int) -> int:
        return min(self._group_size, self._total - group * self._group_size)
