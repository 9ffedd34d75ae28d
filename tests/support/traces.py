# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a test may leave on the machine: each kind says what there is, and takes one away.

Other people's runs and other processes of tests share the machine, so each kind lists only what
this process of tests has made, itself or through what it has started:

- Processes are its descendants. It is their subreaper, so that they stay so when their parent dies.
- Temporary files are in a folder that no other process of tests has.
- Interfaces and named network namespaces have names that occur in a command which was run here.
  One without a name ends with its last process.
"""

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.support.processes import Family, command_of, network_of

_PR_SET_CHILD_SUBREAPER = 36
# PyTorch's cache, shared by all programs of a user.
_CACHES = ("torchinductor_",)
_NAMED_NETWORKS = Path("/run/netns")
_STARTED = ("subprocess.Popen", "os.posix_spawn", "os.system")
_WORD = re.compile(r"[^\s'\"=,;()\[\]]+")


class Processes:
    """The descendants of this process."""

    class Trace(NamedTuple):
        pid: int
        started: int

    def __init__(self):
        # Otherwise the kernel would reparent orphans to init.
        # https://man7.org/linux/man-pages/man2/PR_SET_CHILD_SUBREAPER.2const.html
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._family = Family(os.getpid())
        self._ended = []
        self._here = network_of("self")

    def now(self):
        members = self._family.members()
        self._ended = [each for each in members if each.ended]
        return {self.Trace(each.pid, each.started) for each in members if not each.ended}

    def reap(self, kept):
        """Reap zombies, except processes that may still be waited for."""
        for each in self._ended:
            if each.parent == os.getpid() and self.Trace(each.pid, each.started) not in kept:
                with suppress(ChildProcessError):
                    os.waitpid(each.pid, os.WNOHANG)

    def likeness(self, trace):
        """Return what a restarted process has in common with its predecessor."""
        return command_of(trace.pid)

    def describe(self, trace):
        apart = network_of(trace.pid) not in (self._here, None)
        place = ", in a network namespace of its own" if apart else ""
        return f"the process {trace.pid} ({command_of(trace.pid)}{place})"

    def remove(self, trace):
        with suppress(ProcessLookupError):
            opened = os.pidfd_open(trace.pid)
            try:
                # The number may have been reused just before it was opened.
                if trace in self.now():
                    signal.pidfd_send_signal(opened, signal.SIGKILL)
            finally:
                os.close(opened)


class Files:
    def __init__(self, folder):
        self._folder = folder

    def now(self):
        names = os.listdir(self._folder)  # noqa: PTH208  after every test
        return {name for name in names if not name.startswith(_CACHES)}

    def describe(self, name):
        path = self._folder / name
        return f"the {'folder' if path.is_dir() else 'file'} {path}"

    def remove(self, name):
        path = self._folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


class Commands:
    """The words of all commands that this process runs."""

    def __init__(self):
        self._words = set()
        # https://docs.python.org/3/library/audit_events.html
        sys.addaudithook(self._note)

    def take(self):
        taken, self._words = self._words, set()
        return taken

    def _note(self, event, arguments):
        if event in _STARTED:
            for argument in arguments[:2]:
                texts = argument if isinstance(argument, (list, tuple)) else [argument]
                for text in texts:
                    self._words.update(_WORD.findall(_text(text)))


def _text(word):
    if isinstance(word, int) or word is None:
        return ""
    return os.fsdecode(word)


class _Named:
    """Things that commands name."""

    what = "the thing"

    def __init__(self):
        self._ours, self._before = set(), self._all()

    def look(self, words):
        if words or self._ours:
            names = self._all()
            self._ours = (self._ours | ((names - self._before) & words)) & names
            self._before = names

    def now(self):
        return set(self._ours)

    def describe(self, name):
        return f"the {self.what} {name}"

    def remove(self, name):
        done = subprocess.run(
            ["ip", *self.command, "delete", name], check=False, capture_output=True, text=True
        )
        # Both ends of a pair go with the first.
        if done.returncode != 0 and name in self._all():
            raise OSError(done.stderr.strip())


class Interfaces(_Named):
    what, command = "interface", ("link",)

    @staticmethod
    def _all():
        return {name for _, name in socket.if_nameindex()}


class Networks(_Named):
    what, command = "network namespace", ("netns",)

    @staticmethod
    def _all():
        with suppress(OSError):
            return {path.name for path in _NAMED_NETWORKS.iterdir()}
        return set()
