# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Exceptions of a user's model: the user's own lines, and one sentence."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from switchgnn.base.errors import SwitchGNNError
from switchgnn.training.errors import ModelError

# A traceback without an end would come from a recursion without one.
_MOST_BYTES = 20_000


@contextmanager
def own_code(model: str) -> Iterator[None]:
    """Tell of an exception of the user's model by its file, line and traceback.

    What has not passed through the user's file stays as it is, and so do errors of ours, which
    are no fault of the model.

    Args:
        model: ``FILE.py:NAME``, or the name of a model that comes along, which has no such file.

    Raises:
        ModelError: in place of an exception of the user's code.
    """
    file, colon, _ = model.rpartition(":")
    try:
        yield
    except SwitchGNNError:
        raise
    except Exception as error:
        if not colon or (begin := _first_in(file, error)) is None:
            raise
        raise _model_error(model, file, error, begin) from error


def _first_in(file: str, error: Exception) -> TracebackType | None:
    """Return the part of a traceback from the first frame of a file on; None: it has none."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != file:
        trace = trace.tb_next
    return trace


def _model_error(
    model: str, file: str, error: Exception, begin: TracebackType | None
) -> ModelError:
    own = [frame for frame in traceback.extract_tb(begin) if frame.filename == file]
    where = f", in line {own[-1].lineno} ({own[-1].name})" if own else ""
    words = str(error).strip().partition("\n")[0].rstrip(".")
    reason = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return ModelError(f"The model {model} failed{where}: {reason}.", _details(error, begin))


def _details(error: Exception, begin: TracebackType | None) -> str:
    """Return the traceback; nothing where no line of the user's is to blame."""
    if begin is None and not isinstance(error, SyntaxError):
        return ""
    text = "".join(traceback.format_exception(type(error), error, begin, chain=False))
    if len(text) > _MOST_BYTES:
        half = _MOST_BYTES // 2
        text = f"{text[:half]}\n[...]\n{text[-half:]}"
    return text


@contextmanager
def made_by_user(model: str) -> Iterator[None]:
    """As :func:`own_code`, where every exception is one of the user's file: it may not even load.

    Raises:
        ModelError: in place of an exception.
    """
    file = model.rpartition(":")[0]
    try:
        yield
    except SwitchGNNError:
        raise
    except Exception as error:
        raise _model_error(model, file, error, _first_in(file, error)) from error
