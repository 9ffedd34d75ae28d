# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the subcommands and turns errors into a sentence and exit code 2.

What is imported here is there before Ctrl-C ends the program without a traceback, so it is little.
"""

import sys

from switchgnn.base.errors import SwitchGNNError

TYPE_CHECKING = False  # that of `typing`, which takes a while
if TYPE_CHECKING:
    import typer

# Also where it is `python -m switchgnn`; what shells complete goes by it.
_NAME = "switchgnn"
_FAILED = 2
_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it
_PIPE_CLOSED = 141  # the same of SIGPIPE
_MOST_LETTERS = 60


def main() -> None:
    """Run the program with the arguments of the process.

    A reader of its output that has had enough, such as `head`, ends it without a word.
    """
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

    Typer itself reports wrong usage, also with exit code 2. An exit code of 1 says that sums are
    wrong, so a full disk must not end in a traceback.
    """
    try:
        from switchgnn.base.interruptible import interruptible  # noqa: PLC0415  see above

        with interruptible():
            _application()(prog_name=_NAME)
    except SwitchGNNError as error:
        _print_error(error)
        sys.exit(_FAILED)
    except OSError as error:
        _end_if_full(error)
        _end_if_too_long(error)
        raise
    except MemoryError:
        _print_error(SwitchGNNError("There is too little memory for this: ask for less."))
        sys.exit(_FAILED)
    except KeyboardInterrupt:
        _forget_interrupt()
        sys.exit(_INTERRUPTED)
    except SystemExit as end:
        # Typer takes the interrupt of a command that it runs for an exit.
        if end.code == _INTERRUPTED:
            _forget_interrupt()
        raise


def _forget_interrupt() -> None:
    """Keep Python from ending itself by SIGINT, whatever the exit code is.

    It does so if the last code that was run from a string was interrupted, and dataclasses are made
    from strings: `run_eval_code_obj` in https://github.com/python/cpython, Python/pythonrun.c
    """
    exec("")  # noqa: S102  the last one is this


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


def _end_quietly() -> None:
    _forget_output()
    sys.exit(_PIPE_CLOSED)


def _forget_output() -> None:
    """Keep Python from trying once more at its end, which would change the exit code."""
    import os  # noqa: PLC0415  see above

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)


def _print_error(error: SwitchGNNError) -> None:
    from switchgnn.commands.shared.console import plain_console  # noqa: PLC0415  see above

    console = plain_console(stderr=True, soft_wrap=True, highlight=False)
    if error.details:
        console.print(_printable(error.details.rstrip()))
    console.print(f"Error: {_printable(str(error))}")


def _printable(text: str) -> str:
    # It may quote a file from elsewhere, and a terminal obeys what is no letter.
    return "".join(each if each.isprintable() or each == "\n" else "?" for each in text)


def _application() -> "typer.Typer":
    # Many worker processes start at a time; the imports here load only what each one needs.
    if sys.argv[1:2] in (["worker"], ["train-worker"]):
        from switchgnn.commands.worker import app as workers  # noqa: PLC0415

        return workers
    from switchgnn.commands.application import app  # noqa: PLC0415

    return app
