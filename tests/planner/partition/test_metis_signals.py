# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""SIGTERM interrupts a wait after METIS as it does before."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

# What ends with code 7 when SIGTERM interrupts the reading.
PROGRAM = """
import os, signal, sys
from switchgnn.planner.partition.metis import partition_vertices
import numpy as np

def end(*_):
    sys.exit(7)

signal.signal(signal.SIGTERM, end)
ring = np.arange(100)
partition_vertices(ring, (ring + 1) % 100, vertices=100, parts=4, seed=0)
print("reading", flush=True)
os.read(0, 1)
"""


@pytest.mark.whole
def test_a_signal_interrupts_a_wait_after_metis():
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout.readline() == b"reading\n"
            # The second word: the first argument of the system call that it waits in, here a file.
            waits_in = Path(f"/proc/{process.pid}/syscall")
            wait_until(lambda: waits_in.read_text().split()[1:2] == ["0x0"])
            process.send_signal(signal.SIGTERM)
            assert process.wait(seconds_here(5)) == 7
        finally:
            process.kill()
