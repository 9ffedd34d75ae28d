# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Processes forked from one that has imported what they need.

Importing PyTorch takes seconds of a core, and even a switch or a worker without it half a second.
A command that starts many processes forks itself once, before it does anything else; this nursery
forks them, and they have what the command had imported.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from switchgnn.base.full_disk import writing
from switchgnn.base.machine import module_of, python_program
from switchgnn.topologies.errors import FabricError
from switchgnn.topologies.processes.child import DIE_WITH_PARENT, Child, Process
from switchgnn.topologies.processes.nursery_program import serve_forked


class _ForkedProcess(ABC):
    """Implements ``Process`` by polling the exit code."""

    stdin: IO[str] | None = None
    stdout: IO[str] | None = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    @abstractmethod
    def _look(self, seconds: float | None) -> int | None:
        """Return the exit code, or None if it still runs after the seconds (None: no limit)."""

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        if self._code is None:
            self._code = self._look(0.0)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code."""
        if self._code is None:
            self._code = self._look(timeout)
        if self._code is None:
            raise subprocess.TimeoutExpired("forked process", timeout or 0.0)
        return self._code

    def terminate(self) -> None:
        """Ask it to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:
            # It may just have ended.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Forked(_ForkedProcess):
    """A process that a nursery forked."""

    def __init__(
        self, pid: int, status: IO[str], stdin: IO[str] | None = None, stdout: IO[str] | None = None
    ) -> None:
        super().__init__(pid)
        self.stdin, self.stdout = stdin, stdout
        self._status = status

    def _look(self, seconds: float | None) -> int | None:
        ready, _, _ = select.select([self._status], [], [], seconds)
        if not ready:
            return None
        text = self._status.read()
        self._status.close()
        # No text: the nursery itself was killed, and its children with it.
        return int(text) if text else -signal.SIGKILL


class Descendant(_ForkedProcess):
    """A process that this one forked."""

    def _look(self, seconds: float | None) -> int | None:
        watch = os.pidfd_open(self.pid)
        try:
            ready, _, _ = select.select([watch], [], [], seconds)
        finally:
            os.close(watch)
        if not ready:
            return None
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


_PROGRAM = python_program("switchgnn.topologies.processes.nursery_program")
_STOP_SECONDS = 5.0
_NUMBER_BYTES = 32


class Nursery:
    """A process that forks Python programs on request. A context manager.

    With `preload`, the names of modules, it is a new process that imports them while the caller
    continues. Otherwise it is forked from this process with all its imports; this process must not
    have started a thread or a parallel loop before.
    """

    def __init__(
        self, preload: Sequence[str] | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._preload = None if preload is None else list(preload)
        self._environment = dict(environment or {})
        self._running: _Running | None = None

    def start(self) -> None:
        """Start the process unless it runs."""
        if self._running is not None:
            return
        folder = Path(tempfile.gettempdir())
        with writing(folder):
            log = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  closed by stop()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = self._fork_myself(theirs, log) if self._preload is None else None
            self._running = _Running(process or self._execute(theirs, log), ours, log)

    def _execute(self, theirs: socket.socket, log: IO[bytes]) -> Process:
        return subprocess.Popen(
            [*DIE_WITH_PARENT, *_PROGRAM, *(self._preload or ())],
            stdin=theirs.fileno(),
            stdout=log,
            stderr=log,
            env={**os.environ, **self._environment},
            start_new_session=True,
            text=True,
        )

    def _fork_myself(self, theirs: socket.socket, log: IO[bytes]) -> Process:
        parent = os.getpid()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        # Until the child has its own, a signal handler of this process would resume this program.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = os.fork()
            if pid == 0:
                serve_forked((theirs.fileno(), log.fileno()), parent, before, self._environment)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return Descendant(pid)

    def child(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        pipe: bool = False,
        environment: Mapping[str, str] | None = None,
        namespace: Path | None = None,
        folder: Path | None = None,
    ) -> "ForkedChild":
        """Return a child that runs the command, not yet started; `folder`: where it runs."""
        return ForkedChild(
            self,
            name,
            command,
            log,
            pipe=pipe,
            environment=environment or {},
            namespace=namespace,
            folder=folder,
        )

    @staticmethod
    def forks(command: Sequence[str]) -> bool:
        """Return whether a nursery can run this command."""
        return module_of(command) is not None

    def fork(self, order: Mapping[str, object], files: Sequence[int]) -> int:
        """Fork a child and return its process id."""
        running = self._running
        if running is None:
            raise FabricError("The nursery has not been started, or was stopped.")
        try:
            socket.send_fds(running.orders, [json.dumps(order).encode()], list(files))
            answer = running.orders.recv(_NUMBER_BYTES)
        except OSError as error:
            raise FabricError(running.last_words()) from error
        if not answer:
            raise FabricError(running.last_words())
        return int(answer)

    def stop(self) -> None:
        """End the process, and with it all its children; idempotent."""
        running, self._running = self._running, None
        if running is None:
            return
        running.orders.close()
        # It may still be importing; its children die with it.
        running.process.terminate()
        try:
            running.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            running.process.kill()
            running.process.wait()
        running.log.close()

    def __enter__(self) -> "Nursery":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@dataclass(frozen=True)
class _Running:
    """A nursery's process, this end of its standard input, and its log."""

    process: Process
    orders: socket.socket
    log: IO[bytes]

    def last_words(self) -> str:
        """Return the last line that it wrote."""
        self.log.seek(0)
        lines = [line for line in self.log.read().decode(errors="replace").splitlines() if line]
        return lines[-1] if lines else "the process that forks workers is gone."


class ForkedChild(Child):
    """A child of a nursery."""

    def __init__(
        self,
        nursery: Nursery,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        pipe: bool,
        environment: Mapping[str, str],
        namespace: Path | None,
        folder: Path | None,
    ) -> None:
        assert nursery.forks(command)  # noqa: S101
        super().__init__(name, command, log, pipe=pipe, environment=environment)
        self._nursery = nursery
        self._namespace = namespace
        self._folder = folder

    def start(self) -> None:
        """Fork the process unless it runs."""
        if self._process is not None:
            return
        order = {
            "module": module_of(self._command),
            "environment": self._environment,
            "folder": None if self._folder is None else str(self._folder),
        }
        with ExitStack() as theirs:

            def pipe(*, child_reads: bool) -> tuple[int, int]:
                reader, writer = os.pipe()
                ours, other = (writer, reader) if child_reads else (reader, writer)
                theirs.callback(os.close, other)
                return ours, other

            log = theirs.enter_context(self._open_log())
            status, their_status = pipe(child_reads=False)
            if self._pipe:
                stdin, their_stdin = pipe(child_reads=True)
                stdout, their_stdout = pipe(child_reads=False)
                streams: tuple[IO[str], ...] = (os.fdopen(stdin, "w"), os.fdopen(stdout))
                files = [their_stdin, their_stdout, log.fileno(), their_status]
            else:
                streams = ()
                nothing = theirs.enter_context(Path(os.devnull).open())
                files = [nothing.fileno(), log.fileno(), log.fileno(), their_status]
            ours = (os.fdopen(status), *streams)
            try:
                if self._namespace is not None:
                    files.append(theirs.enter_context(self._namespace.open()).fileno())
                pid = self._nursery.fork(order, files)
            except (OSError, FabricError) as error:
                for stream in ours:
                    stream.close()
                raise FabricError(f"Cannot start {self.name}: {error}") from error
        self._process = Forked(pid, *ours)
        self._tell_start()
