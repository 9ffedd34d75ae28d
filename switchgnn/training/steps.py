"""The operations that all workers make together, and the worker that departs from their order.

An operation that is over within seconds costs nothing: only a worker that waits for longer posts
what it does in the store of the process group, and reads what the others have posted. Workers that
compute post nothing, so they are not blamed.
"""

import json
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from functools import partial
from typing import NamedTuple, TypeVar

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import Store, _get_default_store

from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.errors import HostError
from switchgnn.training.errors import LostWorkerError, OutOfStepError, collective

# Seconds in one operation before the others are looked at, and between two looks.
_PATIENCE, _PERIOD = 3.0, 1.0
# Seconds between two looks whether all have come to an agreement.
_SHORTEST, _LONGEST = 0.001, 0.05
# Looks at the others after a failed exchange, by when they have posted what they do.
_LOOKS = 5
# Operations that a worker posts, so that one that is ahead can be compared with those behind it.
_KEPT = 256
# The key of the first failure in the store, and the most letters of its message.
_FAILED, _MOST_LETTERS = "failed", 1000
_RULE = "all workers must make the same calls in the same order."

Attending = Callable[[], AbstractContextManager[None]]
Result = TypeVar("Result")


def group_store() -> Store:
    """Return the store in which the workers of the process group have met."""
    return _get_default_store()


def leave_word(store: Store, worker: int, error: BaseException) -> None:
    """Post the first failure, for the others."""
    why = str(error) if isinstance(error, SwitchGNNError) else type(error).__name__
    # The store itself may be unreachable.
    with suppress(RuntimeError):
        store.compare_set(_FAILED, "", f"Worker {worker} has failed: {why}"[:_MOST_LETTERS])


def word_left(store: Store) -> LostWorkerError | None:
    """Return the failure that another worker has posted; None: there is none."""
    with suppress(RuntimeError):
        if store.check([_FAILED]):
            why = store.get(_FAILED).decode(errors="replace")
            return LostWorkerError("".join(each if each.isprintable() else " " for each in why))
    return None


class _Made(NamedTuple):
    """The post of a worker: the number of its last operation, and the words of the last ones."""

    number: int
    left: bool  # whether it has left the job
    words: list[str]

    def by_number(self) -> Iterator[tuple[int, str]]:
        return enumerate(self.words, self.number - len(self.words) + 1)


class Steps:
    """The operations of one worker, numbered from 1, each with its words.

    Args:
        worker: the number of the worker.
        workers: how many there are.
        store: of the process group; None: others are not looked at.
        session: of the job, for the keys in the store.
        limit: the seconds that an agreement with the others may take.
    """

    def __init__(
        self,
        worker: int = 0,
        workers: int = 1,
        store: Store | None = None,
        *,
        session: int = 0,
        limit: float = 0.0,
    ) -> None:
        self.worker, self.workers = worker, workers
        self.checksum = 0  # of the words of all operations
        self._group, self._limit = store, limit
        self._store: Store | None = None
        if store is not None:
            self._store = dist.PrefixStore(f"steps/{session}", store)  # type: ignore[attr-defined]
        self._number = self._posted = 0
        self._words: deque[str] = deque([""], maxlen=_KEPT)
        self._known: set[tuple[str, str]] = set()

    @classmethod
    def of_group(cls, worker: int, workers: int, session: int, limit: float) -> "Steps":
        """Return the steps of a worker of the process group in a session, if that uses Gloo."""
        if workers == 1 or dist.get_backend() != dist.Backend.GLOO:
            return cls(worker, workers)
        return cls(worker, workers, group_store(), session=session, limit=limit)

    def enter(self, words: str, attending: Attending = nullcontext) -> None:
        """Begin an operation; all agree on one that follows its predecessor for the first time.

        Gloo aborts the process if others add up another number of numbers, and exchanges of the
        same width cannot be told apart, so neither may begin where a worker leaves the usual order.

        Args:
            words: what the worker is in, with an article, the same on all workers.
            attending: answers others during the agreement, see ``RemoteSum.attending``.

        Raises:
            OutOfStepError: another worker makes another operation, or has left.
            LostWorkerError: another worker has failed, or does not come.
        """
        follows = self._words[-1], words
        self._number += 1
        self._words.append(words)
        self.checksum = zlib.crc32(words.encode(), self.checksum)
        if self._store is not None and follows not in self._known:
            self._known.add(follows)
            with attending(), collective():
                self._agree(self._store, words)

    def wait(self, work: dist.Work | None) -> None:
        """Wait for a collective operation of Gloo, and raise as :meth:`enter` does."""
        if work is None or self._store is None:
            if work is not None:
                work.wait()
            return
        try:
            self._wait(partial(_completed, work))
        except SwitchGNNError:
            self._break_off()
            raise
        try:
            work.wait()
        except RuntimeError:
            self.check()
            raise

    def result(self, future: "Future[Result]") -> Result:
        """Wait for the result of another thread, and raise as :meth:`enter` does."""
        if self._store is not None:
            self._wait(partial(_done, future))
        try:
            return future.result()
        except HostError as error:
            for _ in range(_LOOKS if error.workers and self._store is not None else 0):
                self.check()
                time.sleep(_PERIOD)
            raise

    def check_together(self, meet: Callable[[], object]) -> None:
        """Check as all workers do, which `meet` lets pass when all have posted."""
        self._post()
        meet()
        self.check(every=True)

    def leave(self) -> None:
        """Post that this worker has left the job."""
        self._post(left=True)

    def check(self, *, every: bool = False) -> None:
        """Post the operation of this worker, and raise as :meth:`enter` does.

        `every`: look at all others, and not just at the next one that is as far.
        """
        if self._group is None:
            return
        if self._posted < self._number:
            self._post()
            self._posted = self._number
        # The first one that is as far looks at the next one itself.
        for ahead in range(1, self.workers):
            other = (self.worker + ahead) % self.workers
            posted = self._posted_by(other)
            if posted is not None:
                self._compare(other, posted)
                if posted.number >= self._number and not every:
                    break
        if (failure := word_left(self._group)) is not None:
            raise failure

    def _agree(self, store: Store, words: str) -> None:
        at = f"agreed/{self._number}"
        first = store.compare_set(at, "", json.dumps([self.worker, words])).decode()
        other, theirs = json.loads(first)
        self._post()  # at once, for those that are in another operation
        if theirs != words:
            self._compare(other, _Made(self._number, left=False, words=[theirs]))
        if store.add(f"{at}/there", 1) == self.workers:
            store.set(f"{at}/all", "")
        until = time.monotonic() + self._limit

        def all_there(seconds: float) -> bool:
            pause, look = _SHORTEST, time.monotonic() + seconds
            while not (there := store.check([f"{at}/all"])) and time.monotonic() < look:
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST)
            if not there and look > until:
                raise LostWorkerError(
                    f"Worker {self.worker} has waited {self._limit:g} s for the others before "
                    f"{words}: look at their errors, or raise the timeout if they only compute."
                )
            return there

        self._wait(all_there)

    def _wait(self, over: Callable[[float], bool]) -> None:
        seconds = _PATIENCE
        while not over(seconds):
            self.check()
            seconds = _PERIOD

    def _post(self, *, left: bool = False) -> None:
        # The worker that holds the store may have ended.
        with suppress(RuntimeError):
            if self._store is not None:
                made = _Made(self._number, left, list(self._words))
                self._store.set(f"made/{self.worker}", json.dumps(made))

    def _posted_by(self, other: int) -> _Made | None:
        with suppress(RuntimeError):
            if self._store is not None and self._store.check([f"made/{other}"]):
                return _Made(*json.loads(self._store.get(f"made/{other}")))
        return None

    def _compare(self, other: int, posted: _Made) -> None:
        own = dict(_Made(self._number, left=False, words=list(self._words)).by_number())
        for number, words in posted.by_number():
            if own.get(number, words) != words:
                verb = "is" if number == self._number == posted.number else "was"
                (one, first), (two, then) = sorted([(self.worker, own[number]), (other, words)])
                raise OutOfStepError(
                    f"Worker {one} {verb} in {first}, and worker {two} in {then}: {_RULE}", [other]
                )
        if posted.left and posted.number < self._number:
            raise OutOfStepError(
                f"Worker {other} has left the job, and worker {self.worker} is in "
                f"{self._words[-1]}: {_RULE}",
                [other],
            )

    def _break_off(self) -> None:
        """End the pending operations of Gloo, for which the group would wait when it is left."""
        # Gloo closes all connections of a receiver that waits for too long.
        with suppress(RuntimeError):
            there = (dist.get_rank() + 1) % dist.get_world_size()
            if (never := dist.irecv(torch.empty(1), there)) is not None:
                never.wait(timedelta(milliseconds=1))


def _completed(work: dist.Work, seconds: float) -> bool:
    try:
        work.wait(timedelta(seconds=seconds))
    except RuntimeError:
        return work.is_completed()
    return True


def _done(future: "Future[Result]", seconds: float) -> bool:
    try:
        future.exception(seconds)
    except FutureTimeoutError:
        return False
    return True
