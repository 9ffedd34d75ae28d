# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Where nothing is lost inside switches, their sums are used: few are fetched."""

from switchgnn.virtual.checks.check import Check

# What the network loses is repaired without fetching, but for bad luck in a row.
_FEW, _SHARE = 2, 0.25


class CalmIsQuiet(Check):
    """Counts the sums that workers have made themselves without incidents and full queues."""

    def session_ends(self) -> None:
        """Look at the tallies of all workers."""
        scenario = self.scene.scenario
        if scenario.incidents or scenario.differences or scenario.queue_rate:
            return
        tallies = [worker.exchange.tally for worker in self.scene.workers if worker.exchange]
        made = sum(tally.sums_made for tally in tallies)
        received = sum(tally.sums_received for tally in tallies)
        if made > _FEW + _SHARE * (made + received):
            self.scene.violated(
                "calm is quiet",
                f"of {made + received} sums workers have made {made} themselves, but no switch has "
                "lost anything",
            )
