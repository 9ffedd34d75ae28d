"""Run programs to their end; who runs, and whose child it is, from /proc.

Not from `/proc/PID/task/TID/children`: it may leave out a child when another one ends meanwhile.
https://man7.org/linux/man-pages/man5/proc_pid_task.5.html
"""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.support.speed import seconds_here

_MOST_LOOKS = 5
_LONGEST_COMMAND = 160


def run_program(command, *, seconds=100, check=False, **options):
    """Run a program, at most that many seconds on an idle machine; return what it prints."""
    limit = seconds_here(seconds)
    return subprocess.run(
        command, capture_output=True, text=True, check=check, timeout=limit, **options
    )


class Process(NamedTuple):
    """A process; one that reuses its number has another `started`."""

    pid: int
    parent: int
    ended: bool
    started: int


def process_of(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  after every test
            text = file.read()
    except OSError:
        return None
    # In front of it is the name, in which anything may stand.
    words = text.rpartition(b")")[2].split()
    return Process(pid, int(words[1]), words[0] in b"ZX", int(words[19])) if words else None


def is_alive(pid):
    """Whether the process runs; zombies do not."""
    found = process_of(pid)
    return found is not None and not found.ended


def all_pids():
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208


def descendants(pid):
    return [found.pid for found in Family(pid).members() if not found.ended]


def command_of(pid):
    """The command line, shortened for messages."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        words = b""
    text = " ".join(words.decode(errors="replace").split()) or "unknown"
    return text if len(text) <= _LONGEST_COMMAND else f"{text[: _LONGEST_COMMAND - 3]}..."


def network_of(pid):
    """The network namespace of a process, or None without access."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")  # noqa: PTH115  it is no path
    except OSError:
        return None


class Family:
    """The descendants of a process; a stranger is looked at once, as nobody becomes one later."""

    def __init__(self, pid):
        self._pid = pid
        self._strangers = set()

    def members(self):
        """All descendants, including zombies."""
        for _ in range(_MOST_LOOKS):
            pids = all_pids()
            self._strangers &= pids
            seen = {pid: process_of(pid) for pid in pids - self._strangers}
            seen = {pid: found for pid, found in seen.items() if found}
            related = {pid: self._is_related(pid, seen) for pid in seen}
            self._strangers |= {pid for pid, answer in related.items() if answer is False}
            # A parent has ended during the walk, so the process has another.
            if None not in related.values():
                break
        return [seen[pid] for pid, answer in related.items() if answer]

    def _is_related(self, pid, seen):
        """Whether it is a descendant; None if a parent on the way is gone."""
        if pid == self._pid:
            return False
        while pid in seen:
            pid = seen[pid].parent
            if pid == self._pid:
                return True
        return False if pid in self._strangers or pid == 0 else None
