# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m switchgnn.topologies.processes.nursery_program MODULE ...``: forks on request.

Standard input is a socket. Each message is an order in JSON with file descriptors: standard input,
output and error of the child, the file for its exit code, and possibly its network namespace. The
answer is its process id. The program ends with the socket, and its children with it. A child acts
like ``python -m`` with its arguments.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

_MOST_BYTES, _MOST_FILES = 1 << 16, 5
_STANDARD_FILES = 3
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1


def serve_forked(
    files: tuple[int, int],
    parent: int,
    signals: Iterable[signal.Signals | int],
    environment: Mapping[str, str],
) -> NoReturn:
    """Serve in a process that was just forked; never returns."""
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        os.setsid()
        _die_with(parent)
        os.environ.update(environment)
        orders, log = files
        for standard, file in enumerate((orders, log, log)):
            os.dup2(file, standard)
        # Among them is the parent's end of the socket, which would keep it from ending.
        os.closerange(_STANDARD_FILES, os.sysconf("SC_OPEN_MAX"))
        serve()
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(0)


def main(modules: Sequence[str]) -> None:
    """Import the modules and serve until standard input ends."""
    for name in modules:
        importlib.import_module(name)
    serve()


def serve() -> None:
    """Fork a child for every order until standard input ends."""
    # Exclude existing objects from collection, which would copy their pages in every child.
    gc.collect()
    gc.freeze()
    # The parent decides when to stop; children restore Ctrl-C.
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
            _become(json.loads(text), files, parent)
        status_of[pid] = files.pop(_STANDARD_FILES)
        for file in files:
            os.close(file)
        orders.send(str(pid).encode())


def _report_ended(status_of: dict[int, int]) -> None:
    """Write the exit code of each child that has ended to its file."""
    for pid in list(status_of):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            file = status_of.pop(pid)
            try:
                os.write(file, str(os.waitstatus_to_exitcode(status)).encode())
            except BrokenPipeError:
                pass  # The parent no longer asks.
            finally:
                os.close(file)


def _die_with(parent: int) -> ctypes.CDLL:
    """Tie this process's life to its parent's; return the C library."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # It died before the last line.
        os._exit(1)
    return libc


def _become(order: dict[str, Any], files: list[int], parent: int) -> NoReturn:
    """Be the child; never returns."""
    code = 1
    try:
        libc = _die_with(parent)
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
        if order["folder"] is not None:
            os.chdir(order["folder"])
        tempfile.tempdir = None  # What was imported may have looked at TMPDIR before.
        module, *arguments = order["module"]
        sys.argv = [module, *arguments]
        # A child may itself fork a nursery, whose children do the same: never close 0 to 2.
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(file, mode, closefd=False) for file, mode in enumerate("rww")
        )
        runpy.run_module(module, run_name="__main__", alter_sys=True)
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
