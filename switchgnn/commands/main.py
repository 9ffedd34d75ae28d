# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the subcommands and turns errors into a sentence and exit code 2.

It imports little, as Ctrl-C during its imports ends in a traceback.
"""

import sys

from switchgnn.base.errors import SwitchGNNError, printable
from switchgnn.commands.worker import WORKERS, run_worker

# Completion depends on it, also with `python -m switchgnn`.
_NAME = "switchgnn"
_FAILED = 2
_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it
_PIPE_CLOSED = 141  # the same of SIGPIPE
_MOST_LETTERS = 60
# Of address space: an exchange of a few workers needs more than a gigabyte.
_FEW_BYTES, _ENOUGH_BYTES = 3 << 29, 4 << 30


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
            _prepare()
            # Many workers start at once, so they do without the command line.
            if sys.argv[1:2] in ([name] for name in WORKERS):
                run_worker(sys.argv[1])
                return
            from switchgnn.commands.application import app  # noqa: PLC0415

            app(prog_name=_NAME)
    except SwitchGNNError as error:
        _print_error(error)
        sys.exit(_FAILED)
    except OSError as error:
        _end_if_full(error)
        _end_if_too_long(error)
        _end_if_limited(error)
        raise
    except MemoryError as error:
        _end_if_limited(error)
        _print_error(SwitchGNNError("There is too little memory for this: ask for less."))
        sys.exit(_FAILED)
    except (ImportError, RuntimeError) as error:
        _end_if_limited(error)
        raise
    except KeyboardInterrupt:
        _forget_interrupt()
        sys.exit(_INTERRUPTED)
    except SystemExit as end:
        # Typer takes the interrupt of a command that it runs for an exit.
        if end.code == _INTERRUPTED:
            _forget_interrupt()
        raise


def _prepare() -> None:
    """Make the best of what the process was started with."""
    from switchgnn.base.files import open_standard_streams  # noqa: PLC0415  see above

    open_standard_streams()
    _only_print_warnings()
    if (most := _address_space()) is not None and most < _FEW_BYTES:
        # gRPC waits for ever where it cannot start its threads.
        _print_error(_limited(most, "libraries may fail or hang"), "Warning")


def _only_print_warnings() -> None:
    """Print warnings that Python is asked to raise, here and in workers: libraries have some.

    Scripts that users launch are asked the same as before.
    """
    import os  # noqa: PLC0415  see above
    import warnings  # noqa: PLC0415

    if any(action == "error" for action, *_ in warnings.filters):
        warnings.simplefilter("default")
        if sys.argv[1:2] != ["launch"]:
            os.environ["PYTHONWARNINGS"] = "default"


def _forget_interrupt() -> None:
    """Keep Python from ending itself by SIGINT.

    It does so if the last code run from a string, as of dataclasses, was interrupted:
    `run_eval_code_obj` in https://github.com/python/cpython, Python/pythonrun.c
    """
    exec("")  # noqa: S102  now this is the last one


def _end_if_full(error: OSError) -> None:
    """End with a sentence if a disk is full."""
    from switchgnn.base.full_disk import WriteError, is_full  # noqa: PLC0415  see above

    if is_full(error):
        _forget_output()
        what = error.filename or "what is printed"
        _print_error(WriteError(f"Cannot write {what}: {error.strerror}; make room there."))
        sys.exit(_FAILED)


def _end_if_too_long(error: OSError) -> None:
    """End with a sentence if a name is longer than file systems take."""
    import errno  # noqa: PLC0415  see above

    if error.errno == errno.ENAMETOOLONG:
        name = str(error.filename)[:_MOST_LETTERS]
        _print_error(SwitchGNNError(f"The file name {name}... is too long: give a shorter one."))
        sys.exit(_FAILED)


def _address_space() -> int | None:
    """Return the most bytes of address space if the limit is low: libraries reserve gigabytes."""
    import resource  # noqa: PLC0415  see above

    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return most if 0 <= most < _ENOUGH_BYTES else None


def _end_if_limited(error: Exception) -> None:
    """End with a sentence if address space is limited, which many errors of libraries come from."""
    if (most := _address_space()) is not None:
        _print_error(_limited(most, str(error) or type(error).__name__))
        sys.exit(_FAILED)


def _limited(most: int, why: str) -> SwitchGNNError:
    return SwitchGNNError(
        f"`ulimit -v` allows {most >> 20:,} MB of address space, which is little: raise it ({why})."
    )


def _end_quietly() -> None:
    _forget_output()
    sys.exit(_PIPE_CLOSED)


def _forget_output() -> None:
    """Keep Python from another attempt at its end, which would change the exit code."""
    import os  # noqa: PLC0415  see above

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)


def _print_error(error: SwitchGNNError, kind: str = "Error") -> None:
    from switchgnn.commands.shared.console import plain_console  # noqa: PLC0415  see above

    console = plain_console(stderr=True, soft_wrap=True, highlight=False)
    if error.details:
        console.print(printable(error.details.rstrip()))
    console.print(f"{kind}: {error}")
