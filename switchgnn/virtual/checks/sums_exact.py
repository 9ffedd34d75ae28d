# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Every sum that a worker has is exact."""

import numpy as np

from switchgnn.virtual.checks.check import Check
from switchgnn.virtual.parts.worker import Done


class SumsExact(Check):
    """Compares all sums with those of the oracle."""

    def session_begins(self) -> None:
        """Compute the right sums of the session's rounds."""
        job, oracle = self.scene.job, self.scene.subject.oracle
        self._right = [
            oracle.sums(oracle.fixed(features), direction)
            for features, direction in (job.rounds if job else ())
        ]

    def done(self, done: Done) -> None:
        """Compare the sums of one exchange of one worker."""
        vertices = self.scene.subject.plan.workers[done.worker].vertices
        right = self._right[done.round - 1][vertices]
        if not np.array_equal(right, done.values):
            wrong = vertices[(right != done.values).any(axis=1)]
            self.scene.violated(
                "sums exact",
                f"session {done.session}, round {done.round}: worker {done.worker} has "
                f"{len(wrong)} wrong sums, the first of vertex {wrong[0]}",
            )
