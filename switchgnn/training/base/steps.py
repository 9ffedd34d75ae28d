"""The operations that all workers make together, and the worker that departs from their order.

A worker that waits for seconds posts its operations in the store of the process group, and reads
what others have posted. Workers that compute post nothing, so they are not blamed.
"""

import json
import zlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from itertools import chain, repeat
from typing import TypeVar

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import Store, _get_default_store

from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.base.errors import HostError
from switchgnn.training.base.errors import LostWorkerError, OutOfStepError, collective

# Seconds in one operation before others are looked at, and between two looks.
_PATIENCE, _PERIOD = 3.0, 1.0
# The last operations of a worker, which it posts for workers that have made fewer.
_KEPT = 256
# The key of the first failure in the store, and the most letters of its message.
_FAILED, _MOST_LETTERS = "failed", 1000

Result = TypeVar("Result")


def leave_word(worker: int, error: BaseException) -> None:
    """Post the first failure, for the others of the process group."""
    why = str(error) if isinstance(error, SwitchGNNError) else type(error).__name__
    # The store itself may be unreachable.
    with suppress(RuntimeError):
        said = f"Worker {worker} has failed: {why}"[:_MOST_LETTERS]
        _get_default_store().compare_set(_FAILED, "", said)


def word_left() -> LostWorkerError | None:
    """Return the failure that another worker has posted; None: there is none."""
    with suppress(RuntimeError, ValueError):  # of a store, or where there is none
        if (store := _get_default_store()).check([_FAILED]):
            why = store.get(_FAILED).decode(errors="replace")
            return LostWorkerError("".join(each if each.isprintable() else " " for each in why))
    return None


def give_up(group: dist.ProcessGroup | None = None) -> None:
    """End all operations of a group of Gloo, as leaving it would wait for them."""
    with suppress(RuntimeError, ValueError):
        # A receiver that times out ends all at once.
        other = (dist.get_rank() + 1) % dist.get_world_size()
        never = dist.irecv(torch.empty(1), other, group)
        never and never.wait(timedelta(milliseconds=1))


class SharedSteps:
    """The operations of a worker, numbered and in words, compared with those of the others.

    `session`: of the job, whose workers meet in a process group of Gloo; None: nothing is compared.
    """

    def __init__(self, worker: int = 0, workers: int = 1, session: int | None = None) -> None:
        self.worker, self.workers = worker, workers
        self.checksum = 0  # of all words
        self._made = deque([(0, "")], maxlen=_KEPT)
        self._known: set[tuple[str, str]] = set()
        self._store: Store | None = None
        if session is not None and workers > 1 and dist.get_backend() == dist.Backend.GLOO:
            self._store = dist.PrefixStore(  # type: ignore[attr-defined]
                f"steps/{session}", _get_default_store()
            )

    def enter(
        self, words: str, attending: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        """Begin an operation, in words that are the same on all workers.

        All agree on it first where it follows its predecessor for the first time: Gloo aborts
        processes that add up different numbers of numbers, and exchanges of the same width could
        take each other's rows. `attending`: answers others in that time.
        """
        number, before = self._made[-1]
        self._made.append((number + 1, words))
        self.checksum = zlib.crc32(words.encode(), self.checksum)
        if self._store is not None and (before, words) not in self._known:
            self._known.add((before, words))
            with attending(), collective():
                self.agree()

    def agree(self) -> None:
        """Raise OutOfStepError if workers, which all call this, have made different operations."""
        if self._store is None:
            return
        mine = torch.tensor([self.checksum])
        found = [torch.zeros_like(mine) for _ in range(self.workers)]
        self._post(self._store)
        self.wait(dist.all_gather(found, mine, async_op=True))
        if any(int(each) != self.checksum for each in found):
            self.check(every=True)

    def wait(self, work: dist.Work | None) -> None:
        """Wait for an operation of Gloo, and raise as :meth:`check` does."""
        if work is None:
            return
        try:
            if self._store is not None:
                self._watch(lambda most: work.wait(timedelta(seconds=most)), work.is_completed)
            work.wait()
        except SwitchGNNError:
            give_up()
            raise
        except RuntimeError:
            self.check()
            raise

    def result(self, future: "Future[Result]") -> Result:
        """Wait for the result of another thread, and raise as :meth:`check` does."""
        try:
            if self._store is not None:
                self._watch(future.exception, future.done)
            return future.result()
        except HostError:
            self.check()
            raise

    def leave(self) -> None:
        """Post that this worker has left the job."""
        # The worker that holds the store may have ended.
        with suppress(RuntimeError):
            if self._store is not None:
                self._post(self._store, left=True)

    def check(self, *, every: bool = False) -> None:
        """Raise OutOfStepError or LostWorkerError if others do something else, or have left.

        `every`: of all others, and not just of the next one that is as far.
        """
        if self._store is None:
            return
        with suppress(RuntimeError):
            self._post(self._store)
            for ahead in range(1, self.workers):
                other = (self.worker + ahead) % self.workers
                if self._store.check([f"made/{other}"]):
                    posted = json.loads(self._store.get(f"made/{other}"))
                    self._compare(other, **posted)
                    # It looks at those that come after it.
                    if posted["made"][-1][0] >= self._made[-1][0] and not every:
                        break
            if (failure := word_left()) is not None:
                raise failure

    def _watch(self, over: Callable[[float], object], done: Callable[[], bool]) -> None:
        for seconds in chain([_PATIENCE], repeat(_PERIOD)):
            with suppress(RuntimeError, FutureTimeoutError):
                over(seconds)
            if done():
                return
            self.check()

    def _post(self, store: Store, *, left: bool = False) -> None:
        store.set(f"made/{self.worker}", json.dumps({"left": left, "made": list(self._made)}))

    def _compare(self, other: int, made: list[tuple[int, str]], *, left: bool) -> None:
        own, (now, current) = dict(self._made), self._made[-1]
        last, rule = made[-1][0], "all workers must make the same calls in the same order."
        for number, words in made:
            if own.get(number, words) != words:
                verb = "is" if number == now == last else "was"
                (one, first), (two, then) = sorted([(self.worker, own[number]), (other, words)])
                what = f"Worker {one} {verb} in {first}, and worker {two} in {then}"
                raise OutOfStepError(f"{what}: {rule}", [other])
        if left and last < now:
            what = f"Worker {other} has left the job, and worker {self.worker} is in {current}"
            raise OutOfStepError(f"{what}: {rule}", [other])
