# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How much memory the process holds at most, and how much there is."""

import re
import resource
import sys
from pathlib import Path

_CLEAR = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")
_MACHINE = Path("/proc/meminfo")
# Writing this makes Linux forget the peak so far.
_FORGET_PEAK = "5"
_KILO = 1024


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
