# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How often each worker has had a slot of the switch released, and who does it too often.

Each release is a sum that the worker makes itself, of features that others send it one by one.
Where packets get lost inside switches, all workers do so now and then.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from switchgnn.commands.shared.workers import WorkerError
from switchgnn.controller import Counters, P4RuntimeClient, read_counters
from switchgnn.planner.partition.leaf_spine import LeafSpine

_MANY = 100
_TIMES_THE_OTHERS = 10


def releases_between(
    leaf_spine: LeafSpine | None,
    workers: int,
    before: Sequence[Counters],
    after: Sequence[Counters],
) -> tuple[int, ...]:
    """Return how many slots each worker has had released, by its leaf or the one switch.

    Args:
        leaf_spine: the topology; None for a star.
        workers: their number.
        before: the counters of each switch, leaves first.
        after: the same, later.

    Returns:
        One number per worker.
    """
    nearest = len(after) if leaf_spine is None else leaf_spine.leaves
    return tuple(
        sum(
            new.releases[worker] - old.releases[worker]
            for old, new in zip(before[:nearest], after[:nearest], strict=True)
        )
        for worker in range(workers)
    )


@contextmanager
def naming_who_releases(
    clients: Sequence[P4RuntimeClient], leaf_spine: LeafSpine | None, workers: int
) -> Iterator[None]:
    """Let the error of a worker say as well who has had too many slots released.

    Args:
        clients: of all switches, leaves first.
        leaf_spine: the topology; None for a star.
        workers: their number.

    Yields:
        Nothing; what runs inside is watched.

    Raises:
        WorkerError: the one that was raised inside, with a sentence more.
    """
    before = [read_counters(client) for client in clients]
    try:
        yield
    except WorkerError as error:
        after = [read_counters(client) for client in clients]
        sentence = too_many_releases(releases_between(leaf_spine, workers, before, after))
        if not sentence:
            raise
        raise WorkerError(f"{error} {sentence}") from error


def too_many_releases(releases: Sequence[int]) -> str:
    """Name the workers that have had far more slots released than the others.

    Args:
        releases: of each worker.

    Returns:
        A sentence; empty where nobody has.
    """
    sentences = []
    for worker, number in enumerate(releases):
        others = [*releases[:worker], *releases[worker + 1 :]]
        average = sum(others) / len(others) if others else 0.0
        if number >= _MANY and number > _TIMES_THE_OTHERS * average:
            sentences.append(
                f"Worker {worker} had {number:,} slots released, the others {average:,.0f} on "
                "average: it, or its link, is broken."
            )
    return " ".join(sentences)
