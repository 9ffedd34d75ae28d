# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Every sum that a worker has is exact."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.virtual.checks.check import Check
from switchgnn.virtual.checks.packets.scales import Scales
from switchgnn.virtual.parts.worker import Done


class SumsExact(Check):
    """Compares all sums with those of the oracle."""

    def session_begins(self) -> None:
        """Compute the right sums of the session's rounds."""
        job, oracle = self.scene.job, self.scene.subject.oracle
        self._rounds = job.rounds if job else ()
        self._right = []
        if job is None:
            return
        scales = Scales(self.scene, job)
        for exchange, (features, direction) in enumerate(self._rounds):
            fixed = oracle.fixed(features, scales.of_exchange(exchange).magnitude)
            self._right.append(oracle.sums(fixed, direction))

    def done(self, done: Done) -> None:
        """Compare the sums of one exchange of one worker."""
        if not self.scene.honest(done.worker):
            return
        vertices = self.scene.subject.plan.workers[done.worker].vertices
        right = self._of(done)[vertices]
        if not np.array_equal(right, done.values):
            wrong = vertices[(right != done.values).any(axis=1)]
            wrong = wrong[~np.isin(wrong, list(self.scene.spoilt))]
            if not len(wrong):
                return
            self.scene.violated(
                "sums exact",
                f"session {done.session}, round {done.round}: worker {done.worker} has "
                f"{len(wrong)} wrong sums, the first of vertex {wrong[0]}",
            )

    def _of(self, done: Done) -> NDArray[np.int64]:
        """Return the right sums, at the scale that a mad worker may have changed."""
        if not self.scene.spoilt:
            return self._right[done.round - 1]
        oracle = self.scene.subject.oracle
        features, direction = self._rounds[done.round - 1]
        return oracle.sums(oracle.fixed(features, done.magnitude), direction)
