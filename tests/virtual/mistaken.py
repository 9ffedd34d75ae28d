# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Hosts with a mistake, and what their runs come to: `python -m tests.virtual.mistaken FILE TIMES`.

It replays the scenario of a file so often on each back end that is named behind, and prints the
digests of all traces and what did not hold.
"""

import json
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

from switchgnn.host.innetwork.receiver import SumReceiver
from tests.simulation.draw import Wish
from tests.simulation.scenario import read_scenario
from tests.simulation.soak import Soak


@contextmanager
def sums_that_are_recalled_are_wrong():
    """Let a worker take a sum that it had to ask for as if it were another one."""
    take_sum = SumReceiver.take_sum

    def mistaken(receiver, header, frame, now):
        if header.is_fetch:
            changed = bytearray(frame)
            changed[-1] ^= 1
            frame = memoryview(bytes(changed))
        return take_sum(receiver, header, frame, now)

    with mock.patch.object(SumReceiver, "take_sum", mistaken):
        yield


def main(file, times, *backends):
    scenario = read_scenario(Path(file))
    soak = Soak(Wish())
    found = set()
    with sums_that_are_recalled_are_wrong():
        for backend in backends:
            for _ in range(int(times)):
                outcome = soak.run(replace(scenario, backend=backend))
                found.add((outcome.digest, outcome.violations[0].what))
    json.dump(sorted(found), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
