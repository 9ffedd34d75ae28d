# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How much memory the process holds at most, how much there is, and what has no room in it."""

import re
import resource
import sys
from pathlib import Path

from switchgnn.errors import SwitchGNNError

_CLEAR = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")
_MACHINE = Path("/proc/meminfo")
# Writing this makes Linux forget the peak so far.
_FORGET_PEAK = "5"
_KILO = 1024
_MEGA, _GIGA = 1e6, 1e9


class TooLargeError(SwitchGNNError):
    """What was asked for needs more memory than there is."""


class PeakMemory:
    """The peak of resident memory since it was made.

    Where the system cannot forget an earlier peak (it is no Linux, or forbids it), the peak
    is that of the whole process so far.

    Attributes:
        before: bytes held when it was made.
        forgot: whether the system forgot the earlier peak.
    """

    def __init__(self) -> None:
        self.forgot = _forget_peak()
        self.before = _status("VmRSS") or _process_peak()

    def peak(self) -> int:
        """Return the most bytes held since."""
        return (_status("VmHWM") if self.forgot else None) or _process_peak()


def available_memory() -> int | None:
    """Return how many bytes programs may take before the machine has none left; None: unknown."""
    return _field(_MACHINE, "MemAvailable")


def require_memory(what: str, needed: int, remedy: str) -> None:
    """Check that something has room in memory, before any of it is made.

    A machine that does not report its memory has room for everything.

    Args:
        what: the subject of the error's sentence, in the plural.
        needed: an estimate in bytes, rather too low than too high.
        remedy: what to lower.

    Raises:
        TooLargeError: it has no room.
    """
    room = available_memory()
    if room is not None and needed > room:
        raise TooLargeError(
            f"{what} take {_size(needed)} of memory, and {_size(room)} are free: {remedy}."
        )


def _size(number: int) -> str:
    """Return a number of bytes as people write it; floats end before some absurd sizes do."""
    if number >= _GIGA / 10:
        return f"{number // 10**8 / 10 if number < 10**18 else number // 10**9:,} GB"
    return f"{number / _MEGA:,.1f} MB"


def _forget_peak() -> bool:
    try:
        _CLEAR.write_text(_FORGET_PEAK)
    except OSError:
        return False
    return True


def _status(field: str) -> int | None:
    return _field(_STATUS, field)


def _field(file: Path, field: str) -> int | None:
    try:
        found = re.search(rf"^{field}:\s*(\d+) kB", file.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * _KILO if found else None


def _process_peak() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * _KILO
