# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The workers of a field as threads, and what their sums must be."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.innetwork.exchange import FixedSums, InNetworkExchange
from switchgnn.host.pace import Pace
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.link import Link
from switchgnn.planner.graphs.graph import reference_sums
from tests.fuzz.world import WIDTH, World
from tests.support.speed import pace_here, seconds_here

JOIN_SECONDS = 60
PATIENT = Pace(patience=30.0)
BRIEF = Pace(patience=1.5)


class Team:
    """All workers of a plan; one round at a time."""

    def __init__(
        self,
        world: World,
        links: Sequence[Link],
        addresses: Callable[[int], Addresses],
        *,
        session: int,
        pace: Pace = PATIENT,
        on_block: Callable[[int, int, int, int], None] = lambda *_: None,
    ) -> None:
        self.world = world
        self.round = 0
        self.errors: dict[int, SwitchGNNError] = {}
        self.results: dict[int, FixedSums] = {}
        self.exchanges = [
            InNetworkExchange(
                world.plan.manifest,
                part,
                links[part.worker],
                addresses(part.worker),
                session=session,
                pace=pace_here(pace),
                on_block=lambda *place, worker=part.worker: on_block(worker, *place),
            )
            for part in world.plan.workers
        ]
        self._threads: list[threading.Thread] = []
        self._crash: list[BaseException] = []
        self.features = np.zeros((0, 0), dtype=np.float32)
        self._drawn: list[NDArray[np.float32]] = []

    def begin(self) -> None:
        self.round += 1
        self.results.clear()
        generator = np.random.default_rng(self.round)
        shape = (self.world.graph.vertices, WIDTH)
        self.features = generator.standard_normal(shape).astype(np.float32) * self.round
        # A test may change them afterwards.
        self._drawn.append(self.features)

    def start(self, workers: Iterable[int]) -> None:
        for worker in workers:
            thread = threading.Thread(target=self._work, args=(worker,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def join(self) -> None:
        """Wait until all started workers have their sums, or an error."""
        for thread in self._threads:
            thread.join(seconds_here(JOIN_SECONDS))
            assert not thread.is_alive(), "a worker hangs"
        self._threads.clear()
        for crash in self._crash:
            raise crash

    def play(self) -> None:
        self.begin()
        self.start(range(len(self.exchanges)))
        self.join()

    def check(self) -> None:
        """Check that all workers have all sums of the round, and that they are right."""
        assert not self.errors, self.errors
        for worker in range(len(self.exchanges)):
            wrong = self.wrong_rows(worker)
            assert not len(wrong), f"round {self.round}, worker {worker}: {wrong} differ"

    def wrong_rows(self, worker: int) -> NDArray[np.int64]:
        """The vertices of a worker whose sums are not those of the whole graph.

        The scale is the one that follows from all features, not the one that was used.
        """
        world, result = self.world, self.results[worker]
        limit = 2.0**31 - world.plan.manifest.max_fan_in
        scale = limit / (world.plan.manifest.max_fan_in * self._magnitude())
        fixed = np.rint(self.features.astype(np.float64) * scale).astype(np.int64)
        rows = world.plan.workers[worker].vertices
        expected = reference_sums(world.graph, world.plan.assignment, fixed)[rows]
        if not np.isclose(result.fixed_point.scale, scale, rtol=1e-12):
            return np.asarray(rows)
        return np.asarray(rows[(expected != result.values).any(axis=1)])

    def _magnitude(self) -> float:
        """Return what the scale of the round is made of.

        From the third round on it is foreseen: four times the larger of the two rounds before.
        """
        *before, now = (float(np.abs(features).max()) for features in self._drawn)
        foreseen = 4.0 * max(before[-2:], default=0.0)
        return foreseen if len(before) > 1 and now <= foreseen else now

    def total(self) -> dict[str, int]:
        tallies = [asdict(exchange.tally) for exchange in self.exchanges]
        return {name: sum(tally[name] for tally in tallies) for name in tallies[0]}

    def _work(self, worker: int) -> None:
        rows = self.world.plan.workers[worker].vertices
        try:
            self.results[worker] = self.exchanges[worker].aggregate_fixed(self.features[rows])
        except SwitchGNNError as error:
            self.errors[worker] = error
        except BaseException as error:  # join raises it
            self._crash.append(error)
