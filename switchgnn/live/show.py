# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Shows a run: looks at it twice a second, and publishes what there is."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from switchgnn.live.feed import Feed
from switchgnn.live.gather import EVERY, Gathering
from switchgnn.live.server import serve_page

Look = Callable[[], None]


class Show:
    """Publishes snapshots of what is gathered.

    Args:
        gathering: what is known.
        feed: where it is published.
    """

    def __init__(self, gathering: Gathering, feed: Feed) -> None:
        self.gathering = gathering
        self._feed = feed
        # One snapshot after the other, from any thread.
        self._lock = threading.Lock()

    def publish(self, *, last: bool = False) -> None:
        """Publish what is known now; behind the last nothing follows."""
        with self._lock:
            self._feed.publish(self.gathering.snapshot().to_json(), last=last)

    @contextmanager
    def looking(self, look: Look) -> Iterator[None]:
        """Look twice a second, in a thread, as long as the block runs, and once at its end.

        Args:
            look: reads what has to be read, and raises nothing.

        Yields:
            Once it has begun.
        """
        over = threading.Event()

        def run() -> None:
            while True:
                look()
                self.publish()
                if over.wait(EVERY):
                    return

        thread = threading.Thread(target=run, name="looking on", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            look()
            self.publish()


@contextmanager
def showing(title: str, *, port: int = 0, epochs: int = 0) -> Iterator[tuple[Show, str]]:
    """Serve a page that shows a run, as long as the block runs.

    Args:
        title: what runs.
        port: 0: any that is free.
        epochs: how many there are to be; 0: it is no training.

    Yields:
        What publishes, and the address of the page.

    Raises:
        LiveError: nobody can listen there.
    """
    feed = Feed()
    show = Show(Gathering(title, epochs), feed)
    show.publish()
    with serve_page(feed, port) as address:
        try:
            yield show, address
        finally:
            show.publish(last=True)
