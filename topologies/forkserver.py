"""A process that forks Python programs, which start with what it has imported.

Importing PyTorch takes seconds of a core, and even a switch or a worker without it half a second.
So a command forks itself before it starts a thread, and this server forks switches and workers on
request. The forkserver of ``multiprocessing`` would import everything a second time, stay in the
terminal's process group, whose signals would end the workers before the command has stopped them,
and give its children no standard streams.
"""

import ctypes
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

from switchgnn.topologies.errors import FabricError

# From util-linux. A `preexec_fn` could do the same, but would fork under gRPC's threads.
DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
_STREAMS = 3
_MOST_BYTES, _MOST_FILES = 1 << 16, _STREAMS + 2
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1


class Forkserver:
    """Forks Python programs on request. A context manager.

    It is forked from this process, which must not have started a thread or a parallel loop before.
    """

    def __init__(self) -> None:
        self._pid: int | None = None

    def start(self) -> None:
        """Start the process unless it runs."""
        if self._pid is None:
            self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._pid = self.begin(theirs)

    def begin(self, orders: socket.socket) -> int:
        """Fork the process that serves the orders; return its id."""
        parent = os.getpid()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        # Until the child has its own, a signal handler of this process would resume this program.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = os.fork()
            if pid == 0:
                try:
                    for number in (signal.SIGTERM, signal.SIGHUP):
                        signal.signal(number, signal.SIG_DFL)
                    signal.pthread_sigmask(signal.SIG_SETMASK, before)
                    os.setsid()
                    _die_with(parent)
                    self._orders.close()
                    serve(orders)
                finally:
                    os._exit(1)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid

    def fork(
        self,
        module: Sequence[str],
        files: Sequence[int],
        *,
        environment: Mapping[str, str],
        namespace: Path | None = None,
        folder: Path | None = None,
    ) -> "Forked":
        """Run a module with its arguments, in this namespace and folder.

        `files` are its standard input, output and error.
        """
        if self._pid is None:
            raise FabricError("the process that forks workers was stopped.")
        order = {
            "module": module,
            "environment": dict(environment),
            "namespace": namespace and str(namespace),
            "folder": folder and str(folder),
        }
        reader, writer = os.pipe()
        try:
            socket.send_fds(self._orders, [json.dumps(order).encode()], [*files, writer])
        except OSError as error:
            os.close(reader)
            raise FabricError("the process that forks workers is gone.") from error
        finally:
            os.close(writer)
        return Forked(os.fdopen(reader))

    def stop(self) -> None:
        """End the process, and with it all its children; idempotent."""
        pid, self._pid = self._pid, None
        if pid is not None:
            self._orders.close()
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def __enter__(self) -> "Forkserver":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Forked:
    """A program that a forkserver runs, with the methods of ``subprocess.Popen``."""

    def __init__(self, status: IO[str]) -> None:
        self._status = status
        self._code: int | None = None
        started = status.readline()
        if not started:
            status.close()
            raise FabricError("the process that forks workers is gone.")
        self.pid = int(started)

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code."""
        if self._code is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("forked process", timeout or 0.0)
            # No text: the server was killed, and its children with it.
            self._code = int(self._status.read() or -signal.SIGKILL)
            self._status.close()
        return self._code

    def send_signal(self, number: int) -> None:
        """Send a signal unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def _die_with(parent: int) -> ctypes.CDLL:
    """Tie this process's life to its parent's; return the C library."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # It died before the last line.
        os._exit(1)
    return libc


def serve(orders: socket.socket) -> None:
    """Fork a keeper for every order, and the keeper its program, until the orders end."""
    # Exclude existing objects from collection, which would copy their pages in every child.
    gc.collect()
    gc.freeze()
    # The parent decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    server = os.getpid()
    while True:
        text, files, _, _ = socket.recv_fds(orders, _MOST_BYTES, _MOST_FILES)
        if not text:
            return
        if os.fork() == 0:
            try:
                orders.close()
                _keep(json.loads(text), files, server)
            finally:
                os._exit(1)
        for file in files:
            os.close(file)


def _keep(order: dict[str, Any], files: list[int], server: int) -> None:
    """Fork the program; write its process id and, when it has ended, its exit code."""
    _die_with(server)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, status = files
    keeper = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(status)
        _become(order, streams, keeper)
    for file in streams:
        os.close(file)
    os.write(status, f"{pid}\n".encode())
    _, ended = os.waitpid(pid, 0)
    os.write(status, str(os.waitstatus_to_exitcode(ended)).encode())


def _become(order: dict[str, Any], streams: list[int], parent: int) -> NoReturn:
    """Act like ``python -m`` with the order's module and arguments; never return."""
    code = 1
    try:
        libc = _die_with(parent)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        for standard, file in enumerate(streams):
            os.dup2(file, standard)
            os.close(file)
        if order["namespace"] is not None:
            with Path(order["namespace"]).open() as namespace:
                if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "cannot enter the network namespace")
        os.environ.update(order["environment"])
        if order["folder"] is not None:
            os.chdir(order["folder"])
        tempfile.tempdir = None  # What was imported may have looked at TMPDIR before.
        module, *arguments = order["module"]
        sys.argv = [module, *arguments]
        # The program may fork a server itself, whose children do the same: never close 0 to 2.
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
