"""Waits for a condition with a deadline."""

import time

from tests.support.speed import SECONDS, Deadline

_INTERVAL = 0.002


def wait_until(condition, what="what was waited for", seconds=SECONDS):
    """Poll until a condition holds, and return its value; fail at the deadline."""
    deadline = Deadline(seconds)
    while not (value := condition()):
        assert not deadline.is_over(), f"not in time: {what}"
        time.sleep(_INTERVAL)
    return value
