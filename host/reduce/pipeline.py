"""The fragments that are on their way: which to send, which to send again, which sums to take."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Bools, Int64s
from switchgnn.host.base.congestion import CongestionWindow
from switchgnn.host.base.pace import RoundTrip
from switchgnn.host.reduce.frames import FragmentFrames, SumRing
from switchgnn.host.reduce.reduction import Reduction
from switchgnn.host.wire.link import Link

_NEVER = float("inf")
_MOST_DOUBLINGS = 10
# In smoothed round trips. The switch's own answers measure longer ones.
_LONGEST_SAMPLE = 4.0


class Timers:
    """When each fragment was sent, and when it is due again. All times in seconds of one clock.

    `awaited`: bool[slots], the fragments whose sums have not come. `longest`: seconds between two
    repetitions of one fragment, at most.
    """

    def __init__(self, awaited: Bools, round_trip: RoundTrip, longest: float) -> None:
        self._awaited, self._round_trip, self._longest = awaited, round_trip, longest
        slots = len(awaited)
        self._mask = slots - 1
        self._numbers = np.zeros(slots, dtype=np.int64)
        self._first_at, self._sent_at = np.zeros(slots), np.zeros(slots)
        # From the first try until the sum came.
        self._took = np.zeros(slots)
        self._tries = np.zeros(slots, dtype=np.int64)
        self._due = np.full(slots, _NEVER)
        # No fragment is due before.
        self._earliest = _NEVER
        # When the latest of those fragments was sent whose sums have come.
        self._latest = -_NEVER
        # The same for a repetition, and when it counts.
        self._suspicion, self._suspicious_at = -_NEVER, _NEVER
        self._alone: int | None = None

    @property
    def earliest(self) -> float:
        """The time before which no fragment is due; infinite if none is on its way."""
        return min(self._earliest, self._suspicious_at)

    def tries(self, number: int) -> int:
        """Return how often a fragment was sent."""
        return int(self._tries[number & self._mask])

    def sent(self, number: int, count: int, now: float) -> None:
        """Record consecutive fragments that are sent for the first time."""
        numbers = np.arange(number, number + count)
        slots = numbers & self._mask
        self._numbers[slots] = numbers
        self._tries[slots] = 1
        self._first_at[slots] = now
        self._schedule(numbers, now)

    def resent(self, numbers: Int64s, now: float) -> None:
        """Record fragments that are sent again."""
        slots = numbers & self._mask
        self._tries[slots] += 1
        self._schedule(numbers, now)

    def _schedule(self, numbers: Int64s, now: float) -> None:
        slots = numbers & self._mask
        attempts = np.minimum(self._tries[slots] - 1, _MOST_DOUBLINGS)
        timeouts = [self._timeout(each) for each in range(int(attempts.max()) + 1)]
        self._sent_at[slots] = now
        due = now + np.array(timeouts)[attempts]
        if self._alone is not None:
            due[numbers != self._alone] = _NEVER
        self._due[slots] = due
        self._earliest = min(self._earliest, float(due.min()))

    def _timeout(self, attempts: int) -> float:
        longest = max(self._longest, self._round_trip.timeout)
        return min(longest, self._round_trip.backed_off(attempts))

    def arrived(self, numbers: Int64s, now: float) -> None:
        """Record fragments whose sums have come."""
        slots = numbers & self._mask
        self._due[slots] = _NEVER
        self._took[slots] = now - self._first_at[slots]
        tries, sent_at = self._tries[slots], self._sent_at[slots]
        self._round_trip.took(float(tries.mean()))
        smoothed = self._round_trip.smoothed
        took = now - float(sent_at[tries == 1].max(initial=-_NEVER))
        # After a longer time the sum has waited for another worker.
        if took <= _LONGEST_SAMPLE * smoothed:
            self._round_trip.measured(took)
        self._latest = max(self._latest, now - took)
        again = float(sent_at[tries > 1].max(initial=-_NEVER))
        if again > self._latest and self._alone is None:
            # If the sum is that of an earlier try, those of other fragments come with it.
            self._suspicion = again
            self._suspicious_at = now + self._round_trip.timeout / 4
        if self._alone is not None:
            self._alone = None
            self._due[self._awaited] = now + self._round_trip.timeout
            self._earliest = now + self._round_trip.timeout

    def came_again(self, number: int) -> None:
        """Record another copy of a sum; with one for each try, the first was not lost, but late."""
        slot = number & self._mask
        if self._numbers[slot] == number and self._tries[slot] > 1:
            self._tries[slot] -= 1
            if self._tries[slot] == 1:
                longest = _LONGEST_SAMPLE * self._round_trip.smoothed
                self._round_trip.measured(min(longest, float(self._took[slot])))

    def leave_alone(self, number: int, now: float) -> None:
        """Repeat only this fragment until a sum comes: the others wait for another worker, too."""
        slot = number & self._mask
        if self._alone != number:
            self._alone = number
            self._due.fill(_NEVER)
        answered = self._round_trip.answered(int(self._tries[slot]) - 1)
        self._tries[slot] = answered + 1
        self._due[slot] = self._earliest = now + self._timeout(answered)

    def due(self, now: float) -> Int64s:
        """Return the fragments to repeat because their sums are overdue, ascending.

        At first only the oldest one is repeated: the answer tells if all wait for another worker.
        """
        if now < self._earliest:
            return _NONE
        late = np.sort(self._numbers[self._due <= now])
        if len(late) > 1 and self.tries(int(late[0])) == 1:
            self._due[late[1:] & self._mask] = now + self._round_trip.timeout
            late = late[:1]
        if not len(late):
            self._earliest = float(self._due.min())
        return late

    def overtaken(self, now: float) -> Int64s:
        """Return the fragments that were sent once, clearly before one whose sum has come."""
        if now >= self._suspicious_at:
            self._latest = max(self._latest, self._suspicion)
            self._suspicious_at = _NEVER
        bound = self._latest - self._round_trip.smoothed / 4
        early = self._awaited & (self._sent_at < bound) & (self._tries == 1)
        return np.sort(self._numbers[early]) if early.any() else _NONE


_NONE = np.zeros(0, dtype=np.int64)


@dataclass(eq=False)
class FragmentPipeline:
    """The stream of one worker between its first fragment without a sum, `base`, and its `end`.

    At most half of the slots are between `base` and `next`, the first fragment that was not sent. A
    worker that has all sums but the first one has then not yet overwritten its slot, in which the
    switch keeps the sum for those that lost it.
    """

    link: Link
    frames: FragmentFrames
    sums: SumRing
    timers: Timers
    congestion: CongestionWindow
    base: int

    def __post_init__(self) -> None:
        self._span = max(1, len(self.sums.awaited) // 2)
        self.next = self.end = self.base
        self.in_flight = 0  # fragments that were sent, and whose sums have not come
        self._unsent: deque[Reduction] = deque()
        self._unfinished: deque[Reduction] = deque()
        self._blocked = False

    @property
    def first(self) -> Reduction:
        """The first tensor that is not done; there must be one."""
        return self._unfinished[0]

    def append(self, reduction: Reduction) -> None:
        """Append the fragments of a tensor; the first one must be `end`."""
        self.end = reduction.end
        self._unsent.append(reduction)
        self._unfinished.append(reduction)

    def send_new(self, now: float) -> int:
        """Send the fragments that window, rate and slots allow; return how many."""
        limit = min(self.end, self.base + self._span)
        self._blocked = False
        if self.next >= limit:
            return 0
        allowed = self.congestion.allowance(self.in_flight, now)
        self._blocked = allowed < limit - self.next
        first, limit = self.next, min(limit, self.next + allowed)
        while self.next < limit:
            count = self._unsent[0].write(self.frames, self.next, limit)
            if not count:
                # The next one needs the sum of an earlier one, however long it takes.
                self._blocked = False
                break
            self.next += count
            if self.next == self._unsent[0].end:
                self._unsent.popleft()
        count = self.next - first
        if count:
            self.sums.await_sums(first, count)
            self.timers.sent(first, count, now)
            self.in_flight += count
            self.congestion.sent(count)
            self.frames.send(self.link, first, count)
        return count

    def wait(self) -> float | None:
        """Return the seconds until the rate lets the next fragment go; None: no need to wait."""
        if not self._blocked or self.in_flight >= int(self.congestion.window):
            return None
        return self.congestion.wait()

    def resend(self, now: float) -> int:
        """Send again what is overdue, or was overtaken; return how many fragments."""
        overtaken = self.timers.overtaken(now)
        if len(overtaken):
            self.congestion.lost(now)
            self.repeat(overtaken, now)
        late = self.timers.due(now)[: int(self.congestion.window)]
        if len(late):
            if self.timers.tries(int(late[0])) > 1:
                self.congestion.lost(now)
            self.repeat(late, now)
        return len(overtaken) + len(late)

    def repeat(self, numbers: Int64s, now: float) -> None:
        """Send some fragments again, ascending ones."""
        self.timers.resent(numbers, now)
        for run in np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1):
            self.frames.send(self.link, int(run[0]), len(run))

    def arrived(self, numbers: Int64s, now: float) -> None:
        """Take the sums that the ring has stored, as far as none before them is missing.

        DifferentMarksError: the workers reduce different tensors, from `base` on.
        """
        self.in_flight -= len(numbers)
        self.timers.arrived(numbers, now)
        self.congestion.acknowledged(len(numbers))
        end = self.sums.first_awaited(self.base)
        while self.base < end:
            reduction = self._unfinished[0]
            limit = min(end, reduction.end)
            reduction.take(self.sums, self.base, limit)
            self.base = limit
            if reduction.done:
                self._unfinished.popleft()
