# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Waits for a condition with a deadline, and looks at processes through /proc."""

import time
from pathlib import Path

SECONDS = 20.0
_INTERVAL = 0.02


def wait_until(condition, seconds=SECONDS):
    """Poll until it holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(_INTERVAL)


def is_alive(pid):
    """Whether the process runs; one that has ended and was not reaped does not."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
