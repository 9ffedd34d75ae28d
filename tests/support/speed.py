"""How much longer than on an idle machine of its kind things may take, here and now.

A deadline of a test only bounds how long a failure takes. It is chosen for an idle machine with two
cores, and :func:`seconds_here` returns how long that is on this machine under its present load.
"""

import functools
import hashlib
import os
import time
from dataclasses import replace
from pathlib import Path

# The usual deadline of instant operations.
SECONDS = 20.0
# Seconds of the piece of work on the reference core.
_REFERENCE_SECONDS = 0.040
_STEPS = 500
_MOST = 20.0
_LOAD = Path("/proc/loadavg")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
# Child processes reuse the measurement.
_KNOWN = "SWITCHGNN_TESTS_CORE"


def seconds_here(seconds=SECONDS):
    """Return a deadline for this machine: at least as long, at most twenty times."""
    return seconds * slowness()


def pace_here(pace):
    """Return a pace for this machine, with the patience of the tests."""
    return replace(pace, timeout=seconds_here(pace.timeout))


def slowness():
    """Return how much slower this machine is now than the reference of the deadlines."""
    return min(_MOST, max(1.0, core_slowness() * max(1.0, crowd())))


class Deadline:
    """A deadline that moves when the machine becomes busier."""

    def __init__(self, seconds):
        self._seconds = seconds
        self._began = time.monotonic()
        self._slowness = 1.0

    def is_over(self):
        took = time.monotonic() - self._began
        if took < self._seconds * self._slowness:
            return False
        self._slowness = max(self._slowness, slowness())
        return took >= self._seconds * self._slowness


@functools.cache
def core_slowness():
    """Return how much slower a core is than one of the reference machine."""
    if _KNOWN not in os.environ:
        began = time.thread_time()
        a_piece_of_work()
        os.environ[_KNOWN] = str((time.thread_time() - began) / _REFERENCE_SECONDS)
    return float(os.environ[_KNOWN])


def a_piece_of_work():
    """Work as the interpreter and libraries do."""
    digest = b""
    for step in range(_STEPS):
        digest = hashlib.sha256(digest + bytes(1 << 14)).digest()
        sum(number * step for number in range(1000))
    return digest


def crowd():
    """Return the runnable threads per core, now or in the last minute."""
    words = _LOAD.read_text().split()
    return max(float(words[0]), int(words[3].partition("/")[0])) / cores()


@functools.cache
def cores():
    allowed = float(len(os.sched_getaffinity(0)))
    try:
        quota, period = _QUOTA.read_text().split()
        return min(allowed, int(quota) / int(period))
    except (OSError, ValueError):  # There is none, or it is `max`.
        return allowed
