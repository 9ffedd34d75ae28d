"""Child processes that never outlive their parent."""

import logging
import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from switchgnn.base.files import writing
from switchgnn.base.machine import module_of
from switchgnn.topologies.errors import FabricError
from switchgnn.topologies.forkserver import DIE_WITH_PARENT, Forked, Forkserver

# BMv2 makes its socket with the permissions that this leaves.
_OWNER_ONLY = 0o077
_POLL_INTERVAL = 0.02
_STOP_SECONDS = 5.0
_ANSWER_SECONDS = 60.0
_LOG = logging.getLogger(__name__)
# Last lines of a process's log that are logged again.
_MOST_LINES = 100


def temporary_files_in(folder: Path) -> dict[str, str]:
    """Return the variables that move a process's temporary files to a folder.

    A killed process leaves them, and they are removed with the run's folder.
    """
    return {"TMPDIR": str(folder.absolute())}


def how_it_ended(code: int | None) -> str:
    """Return how a process ended, as a predicate."""
    if code is None or code >= 0:
        return f"stopped with code {code}"
    memory = ", probably for lack of memory" if -code == signal.SIGKILL else ""
    return f"was killed by signal {-code}{memory}"


class Child:
    """A process with a log file; start, wait until ready, stop. A context manager.

    `name`: what messages call it. `log`: for its standard error, and its output unless `pipe` makes
    pipes of input and output. `environment`: variables to set. `forkserver`: forks it, in `folder`,
    if its program is a Python module. `namespace`: its network namespace, such as
    ``/proc/PID/ns/net``; None: that of this process.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        pipe: bool = False,
        environment: Mapping[str, str] | None = None,
        forkserver: Forkserver | None = None,
        namespace: Path | None = None,
        folder: Path | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._command = list(command)
        self._pipe = pipe
        self._environment = dict(environment or {})
        self._forkserver = forkserver
        self._namespace = namespace
        self._folder = folder
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self._stdin: IO[str] | None = None
        self._stdout: IO[str] | None = None

    def start(self) -> None:
        """Start the process unless it runs."""
        if self._process is not None:
            return
        with ExitStack() as theirs:
            with writing(self.log):
                log = theirs.enter_context(self.log.open("w")).fileno()
            stdin, stdout = theirs.enter_context(Path(os.devnull).open()).fileno(), log
            if self._pipe:
                stdin, write = os.pipe()
                read, stdout = os.pipe()
                for file in (stdin, stdout):
                    theirs.callback(os.close, file)
                self._stdin, self._stdout = os.fdopen(write, "w"), os.fdopen(read)
            try:
                self._process = self._begin(stdin, stdout, log)
            except FabricError as error:
                self._close_pipes()
                raise FabricError(f"Cannot start {self.name}: {error}") from error
        words = shlex.join(module_of(self._command) or self._command)
        _LOG.info("%s: process %d, %s; its log: %s", self.name, self.pid, words, self.log)

    def _close_pipes(self) -> None:
        for stream in (self._stdin, self._stdout):
            if stream is not None:
                # What was written but not read goes with the process.
                with suppress(BrokenPipeError):
                    stream.close()

    def _begin(self, stdin: int, stdout: int, stderr: int) -> subprocess.Popen[bytes] | Forked:
        module = module_of(self._command)
        if self._forkserver is not None and module is not None:
            return self._forkserver.fork(
                module,
                (stdin, stdout, stderr),
                environment=self._environment,
                namespace=self._namespace,
                folder=self._folder,
            )
        # From util-linux.
        enter = ["nsenter", f"--net={self._namespace}"] if self._namespace else []
        try:
            # A session of its own: Ctrl-C reaches the parent, which stops its children.
            return subprocess.Popen(
                [*DIE_WITH_PARENT, *enter, *self._command],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env={**os.environ, **self._environment},
                start_new_session=True,
                umask=_OWNER_ONLY,
            )
        except FileNotFoundError as error:
            raise FabricError(f"no {error.filename}.") from error

    def said(self) -> list[str]:
        """Return the non-empty lines of its log."""
        try:
            text = self.log.read_text(errors="replace")
        except OSError:
            return []
        return [line for line in text.splitlines() if line.strip()]

    @property
    def stdin(self) -> IO[str]:
        """The parent's end of its standard input."""
        assert self._stdin is not None  # noqa: S101
        return self._stdin

    @property
    def stdout(self) -> IO[str]:
        """The parent's end of its standard output."""
        assert self._stdout is not None  # noqa: S101
        return self._stdout

    @property
    def pid(self) -> int | None:
        """Its process id while it has one."""
        return self._process.pid if self._process else None

    def exit_code(self) -> int | None:
        """Return its exit code, or None while it runs."""
        return self._process.poll() if self._process else None

    def wait(self, seconds: float) -> int | None:
        """Return its exit code, or None if it still runs after the seconds."""
        if self._process is None:
            return None
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Poll until ``ready()``, for at most that many seconds."""
        deadline = time.monotonic() + seconds
        while not ready():
            code = self.exit_code()
            if code is not None:
                raise FabricError(f"{self.name} {how_it_ended(code)}: {self.last_words()}")
            if time.monotonic() > deadline:
                raise FabricError(
                    f"{self.name} was not ready after {seconds:g} s: {self.last_words()}"
                )
            self.wait(_POLL_INTERVAL)

    def tell(self, line: str) -> None:
        """Write a line to its input."""
        self.stdin.write(f"{line}\n")
        self.stdin.flush()

    def read_line(self) -> str:
        """Return the next line of its output; it must not print another one without a question."""
        if not select.select([self.stdout], [], [], _ANSWER_SECONDS)[0]:
            raise FabricError(
                f"{self.name} has not answered for {_ANSWER_SECONDS:g} s: {self.last_words()}"
            )
        line = self.stdout.readline()
        if not line:
            raise FabricError(f"{self.name} ended: {self.last_words()}")
        return line

    def last_words(self) -> str:
        """Return the last line of its log."""
        lines = self.said()
        return lines[-1].removeprefix("Error: ") if lines else "it left no message."

    def stop(self) -> None:
        """Terminate it, kill it if that does not help; idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        _LOG.info("%s: ended with code %s", self.name, process.poll())
        if _LOG.isEnabledFor(logging.INFO):
            for line in self.said()[-_MOST_LINES:]:
                _LOG.info("%s said: %s", self.name, line)
        self._close_pipes()

    def __enter__(self) -> "Child":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
