# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m switchgnn.topologies.nursery_program MODULE ...``: imports, and forks on request.

Standard input is a socket. Each message is an order in JSON with file descriptors: standard
input, output and error of the child, where its exit code is to be written, and its network
namespace if it has one. The answer is its process id. The end of the socket ends the program, and
its children with it.
"""

import ctypes
import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

_MOST_BYTES, _MOST_FILES = 1 << 16, 5
_STANDARD_FILES = 3
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1


def main(modules: Sequence[str]) -> None:
    """Import the modules and serve until standard input ends; the last one has ``main()``."""
    imported = [importlib.import_module(name) for name in modules]
    run: Callable[[], None] = imported[-1].main
    # The parent decides when to stop; a child gets Ctrl-C back as any process has it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    orders = socket.socket(fileno=os.dup(0))
    status_of: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([orders.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, _MOST_BYTES)
            _report_ended(status_of)
        if orders.fileno() not in ready:
            continue
        text, files, _, _ = socket.recv_fds(orders, _MOST_BYTES, _MOST_FILES)
        if not text:
            return
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            orders.close()
            for status in status_of.values():
                os.close(status)
            _become(json.loads(text), files, run, parent)
        status_of[pid] = files.pop(_STANDARD_FILES)
        for file in files:
            os.close(file)
        orders.send(str(pid).encode())


def _report_ended(status_of: dict[int, int]) -> None:
    """Write the exit code of every child that has ended to where it is awaited."""
    for pid in list(status_of):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            file = status_of.pop(pid)
            try:
                os.write(file, str(os.waitstatus_to_exitcode(status)).encode())
            except BrokenPipeError:
                pass  # Nobody asks any more.
            finally:
                os.close(file)


def _become(order: dict[str, Any], files: list[int], run: Callable[[], None], parent: int) -> None:
    """Be the child; never returns."""
    code = 1
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # It died before the last line.
            os._exit(code)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        if len(files) > _STANDARD_FILES + 1 and libc.setns(files[-1], _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "cannot enter the network namespace")
        for standard, file in enumerate(files[:_STANDARD_FILES]):
            os.dup2(file, standard)
        for file in files:
            os.close(file)
        os.environ.update(order["environment"])
        tempfile.tempdir = None  # What was imported may have looked at TMPDIR before.
        sys.argv = list(order["argv"])
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        run()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 1
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
