"""Runs the subcommands and turns errors into a sentence and exit code 2.

It imports little before its `try`, as Ctrl-C during its imports ends in a traceback.
"""

import os
import sys

from switchgnn.base.errors import SwitchGNNError, printable

# Completion depends on it, also with `python -m switchgnn`.
_NAME = "switchgnn"
_FAILED = 2
_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it
_PIPE_CLOSED = 141  # the same of SIGPIPE
# The processes that `run`, `train` and `allreduce` start, and what takes a task as a line of JSON.
_WORKERS = {
    "worker": "switchgnn.host.worker:run",
    "reduce-worker": "switchgnn.host.reduce.worker:run",
    "train-worker": "switchgnn.training.train_worker:run",
}


def main() -> None:
    """Run the program with the arguments of the process; a closed pipe ends it silently."""
    try:
        _run()
    except BrokenPipeError:
        _end_quietly()
    except SystemExit as end:
        # Rich and Typer make this of a closed pipe.
        if end.code == 1 and isinstance(end.__context__, BrokenPipeError):
            _end_quietly()
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            _end_quietly()
        raise


def _run() -> None:
    """Run it, and turn errors into sentences.

    Typer itself reports wrong usage with exit code 2. Exit code 1 means wrong sums, so a full disk
    must not end in a traceback.
    """
    try:
        from switchgnn.base.interruptible import interruptible  # noqa: PLC0415  see above

        with interruptible():
            _start()
    except SwitchGNNError as error:
        _fail(error)
    except OSError as error:
        from switchgnn.base.files import WriteError, is_full  # noqa: PLC0415  see above

        if not is_full(error):
            raise
        _forget_output()
        what = error.filename or "what is printed"
        _fail(WriteError(f"Cannot write {what}: {error.strerror}; make room there."))
    except MemoryError:
        _fail(SwitchGNNError("There is too little memory for this: ask for less."))
    except (KeyboardInterrupt, SystemExit) as end:
        # Typer makes an exit of Ctrl-C.
        if KeyboardInterrupt not in map(type, (end, getattr(end.__context__, "__cause__", None))):
            raise
        sys.stderr.write("Interrupted.\n")
        sys.exit(_INTERRUPTED)


def _end_quietly() -> None:
    _forget_output()
    sys.exit(_PIPE_CLOSED)


def _forget_output() -> None:
    """Keep Python from another attempt at its end, which would change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)


def _fail(error: SwitchGNNError) -> None:
    from switchgnn.commands.shared.console import plain_console  # noqa: PLC0415  see above

    console = plain_console(stderr=True, soft_wrap=True, highlight=False)
    if error.details:
        console.print(printable(error.details.rstrip()))
    console.print(f"Error: {error}")
    sys.exit(_FAILED)


def _start() -> None:
    # Many workers start at once, so each imports only the module of its task.
    if sys.argv[1:2] in ([name] for name in _WORKERS):
        _work(*_WORKERS[sys.argv[1]].split(":"))
        return
    from switchgnn.commands.application import app  # noqa: PLC0415

    app(prog_name=_NAME)


def _work(module: str, function: str) -> None:
    import importlib  # noqa: PLC0415  see above
    import signal  # noqa: PLC0415

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    line = sys.stdin.readline()
    getattr(importlib.import_module(module), function)(line)
