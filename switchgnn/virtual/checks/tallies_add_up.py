# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Each worker sends each feature once on its own, and takes each sum once.

In a round that is void it may have done so for the first fragment of the first block besides.
"""

from switchgnn.planner.direction import Direction
from switchgnn.virtual.checks.check import Check
from switchgnn.virtual.network.fields import words_of
from switchgnn.virtual.parts.worker import Done
from switchgnn.virtual.scene import Scene


class TalliesAddUp(Check):
    """Compares the tally of a worker behind each round with its part of the plan."""

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        plan, scenario = scene.subject.plan, scene.scenario
        fragments = len(words_of(scenario.width, scenario.lanes))
        self._each: dict[tuple[int, Direction], tuple[int, int]] = {}
        self._first: dict[tuple[int, Direction], tuple[int, int]] = {}
        for direction in scene.subject.directions:
            blocks = plan.manifest.direction(direction).block_numbers
            for part in plan.workers:
                first, last = blocks.start - 1, blocks.stop - 1
                sent = part.send_indptr[last] - part.send_indptr[first]
                awaited = part.receive_indptr[last] - part.receive_indptr[first]
                self._each[part.worker, direction] = fragments * int(sent), fragments * int(awaited)
                sent, awaited = (
                    ends[blocks.start] - ends[first] if blocks else 0
                    for ends in (part.send_indptr, part.receive_indptr)
                )
                self._first[part.worker, direction] = int(sent), int(awaited)

    def session_begins(self) -> None:
        """Begin with nothing."""
        self._found: dict[int, tuple[int, int, int]] = {}

    def done(self, done: Done) -> None:
        """Compare a tally."""
        job, exchange = self.scene.job, self.scene.workers[done.worker].exchange
        if job is None or exchange is None or not self.scene.honest(done.worker):
            return
        # A process that was started again counts from its first round.
        before = self._found[done.worker] if done.round > 1 else (0, 0, 0)
        key = done.worker, job.rounds[done.round - 1][1]
        tally = exchange.tally
        found = tally.features_sent, tally.sums_received + tally.sums_made
        void = tally.void - before[2]
        self._found[done.worker] = *found, tally.void
        wanted = before[0] + self._each[key][0], before[1] + self._each[key][1]
        most = wanted[0] + void * self._first[key][0], wanted[1] + void * self._first[key][1]
        if not all(
            low <= here <= high for low, here, high in zip(wanted, found, most, strict=True)
        ):
            self.scene.violated(
                "tallies add up",
                f"worker {done.worker} has sent {found[0]} features and taken {found[1]} sums "
                f"behind round {done.round}: the plan has {wanted[0]} and {wanted[1]}",
            )
