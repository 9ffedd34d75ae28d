# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A plan that somebody else may have made is checked before any of it is written to a switch.

The digests of a plan tell that its files belong together, not who has made them.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from switchgnn.controller.errors import PlanRefusedError
from switchgnn.ownership import reason_to_distrust
from switchgnn.planner.check.files import PlanCheckError
from switchgnn.planner.check.plan import check_plan
from switchgnn.regular_file import read_regular


@contextmanager
def trusted_plan(
    folder: Path, say: Callable[[str], None], *, check: bool | None = None
) -> Iterator[Path]:
    """Yield a folder with a plan that is one's own, or has been checked.

    Args:
        folder: of the plan.
        say: called with a sentence if the plan is checked.
        check: whether to check it; None: if others could have made or changed it.

    Yields:
        The folder itself, or, while the block runs, a copy that nobody can change any more.

    Raises:
        PlanRefusedError: the plan does not do what it promises.
        PlannerError: the folder cannot be read.
    """
    reason = _reason(folder, check=check)
    if reason is None:
        yield folder
        return
    say(f"Checking the plan {folder} first: {reason}.")
    with tempfile.TemporaryDirectory(prefix="switchgnn-plan-") as name:
        copy = Path(name)
        _copy(folder, copy)
        try:
            check_plan(copy)
        except PlanCheckError as error:
            problem = str(error).replace(str(copy), str(folder))
            raise PlanRefusedError(
                f"Nothing of the plan {folder} was installed: {problem}. Make the plan again."
            ) from error
        yield copy


def _reason(folder: Path, *, check: bool | None) -> str | None:
    if check is not None:
        return "that was asked for" if check else None
    try:
        return reason_to_distrust(folder)
    except (FileNotFoundError, NotADirectoryError):
        # What reads the plan says what is missing.
        return None
    except OSError as error:
        return f"whose it is cannot be seen ({error.strerror})"


def _copy(folder: Path, copy: Path) -> None:
    try:
        for path in sorted(folder.iterdir()):
            (copy / path.name).write_bytes(read_regular(path))
    except OSError as error:
        raise PlanRefusedError(
            f"The plan {folder} cannot be read: {error.filename}: {error.strerror}."
        ) from error
