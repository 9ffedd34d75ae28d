"""The document that the page polls: the newest metrics of a run."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import msgspec

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.base.metrics import Values

# Seconds between two polls, of the page and of what it shows.
EVERY = 0.5
# Epochs of the chart of a training.
MOST_LOSSES = 1000
# Pages that the end of the command waits for.
_MOST_PAGES = 64
# An open page polls at least this often, in seconds; a page gets the outcome within this time.
_PATIENCE = 2.0


class JobOutcome(str, Enum):
    """The end of a run."""

    DONE = "done"
    WRONG = "wrong"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass
class Shown:
    """A worker or a switch."""

    name: str
    served: bool = True  # whether there is an address to get them from
    # time of `values` in seconds since the page is served; None before the first
    at: float | None = None
    # metrics by their names in Prometheus, without their prefix
    values: Values = field(default_factory=dict)


@dataclass
class _Document:
    """See docs/live.md."""

    title: str
    epochs: int
    step: str = ""
    seconds: float = 0.0
    network: int = 0  # counts networks, and sessions of a job on several machines
    where: str = ""
    job: str = ""  # the name of the workers' job on the switches
    workers: list[Shown] = field(default_factory=list)
    switches: list[Shown] = field(default_factory=list)
    # pairs of epoch and loss, the newest ones
    losses: list[tuple[int, float]] = field(default_factory=list)
    finished: bool = False  # whether all workers have finished
    outcome: JobOutcome | None = None
    words: str = ""


class Board:
    """The document of a run, shared by threads; `epochs` are 0 if it is not a training."""

    def __init__(self, title: str, epochs: int = 0, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._began = clock.now()
        self._document = _Document(title, epochs)
        self._change = ""  # of a training's paths, the last one
        self._changed = threading.Condition()
        # Pages by their last poll, until they have the outcome.
        self._pages: dict[str, float] = {}

    def step(self, name: str) -> None:
        """Set the current step."""
        with self._changed:
            self._document.step = name

    def begin(
        self, where: str, workers: Sequence[bool] = (), switches: Sequence[str] = (), job: str = ""
    ) -> None:
        """Begin with a network, without metrics and losses.

        `workers`: whether each serves metrics. `switches`: their names. `job`: that of the workers.
        """
        with self._changed:
            document = self._document
            document.network += 1
            document.where, document.job = where, job
            document.workers = [Shown(f"w{n}", served) for n, served in enumerate(workers)]
            document.switches = [Shown(name) for name in switches]
            document.losses, self._change = [], ""
            document.finished = False

    def worker(self, number: int, values: Values) -> None:
        """Set the metrics of a worker."""
        with self._changed:
            self._set(self._document.workers, number, values)

    def switch(self, number: int, values: Values) -> None:
        """Set the metrics of a switch."""
        with self._changed:
            self._set(self._document.switches, number, values)

    def _set(self, shown: Sequence[Shown], number: int, values: Values) -> None:
        if number < len(shown):
            shown[number].at, shown[number].values = self._now(), values

    def epoch(self, epoch: int, loss: float, change: str = "") -> None:
        """Add a finished epoch of a training, and what has changed in it, in words."""
        with self._changed:
            self._change = change or self._change
            self._document.losses.append((epoch, loss))
            del self._document.losses[:-MOST_LOSSES]
            self._document.step = f"training: {epoch} of {self._document.epochs} epochs done"
            if self._change:
                self._document.step += f"; {self._change}"

    def finish(self) -> None:
        """Record that all workers have finished."""
        with self._changed:
            self._document.finished = True

    def end(self, outcome: JobOutcome, words: str) -> None:
        """Record the end of the run; the first call counts."""
        with self._changed:
            if self._document.outcome is None:
                self._document.outcome, self._document.words = outcome, words
                self._document.seconds = self._now()

    def read(self, page: str = "") -> bytes:
        """Return the document as JSON; `page` names the reader."""
        with self._changed:
            if self._document.outcome is None:
                self._document.seconds = self._now()
                self._pages = self._open_pages()
                if len(self._pages) < _MOST_PAGES:
                    self._pages[page] = self._now()
            else:
                self._pages.pop(page, None)
                self._changed.notify_all()
            return msgspec.json.encode(self._document)

    def wait_for_pages(self) -> None:
        """Wait until all open pages have read the outcome, for two seconds at most."""
        with self._changed:
            self._pages = self._open_pages()
            self._changed.wait_for(lambda: not self._pages, _PATIENCE)

    def _open_pages(self) -> dict[str, float]:
        first = self._now() - _PATIENCE
        return {page: polled for page, polled in self._pages.items() if polled >= first}

    def _now(self) -> float:
        return self._clock.now() - self._began
