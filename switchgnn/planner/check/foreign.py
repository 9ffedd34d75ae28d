"""Check plans of other users before use: digests do not show who made a plan."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from switchgnn.base.files import open_regular, private_folder, reason_to_distrust_path
from switchgnn.planner.check.files import PlanCheckError
from switchgnn.planner.check.plan import check_plan
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.plan.files import is_plan_file

# A file of terabytes costs nothing where it has no data in it.
_MOST_BYTES = 4 << 30


class ForeignPlanError(PlannerError):
    """A plan of another user that fails the check or cannot be read."""


@contextmanager
def trusted_plan(
    folder: Path, say: Callable[[str], None], *, check: bool | None = None
) -> Iterator[Path]:
    """Yield a folder with a plan of one's own or a checked copy."""
    # Users who may change a link could redirect it after the check, so it is resolved first.
    resolved = folder.resolve()
    reason = _reason(resolved, check=check)
    if reason is None:
        yield resolved
        return
    say(f"Checking the plan {folder} first: {reason}.")
    with private_folder("switchgnn-plan-") as copy:
        _copy(folder, copy)
        try:
            check_plan(copy)
        except PlanCheckError as error:
            raise _refused(folder, str(error).replace(str(copy), str(folder))) from error
        yield copy


def _refused(folder: Path, problem: str) -> ForeignPlanError:
    return ForeignPlanError(f"The plan {folder} is not used: {problem} Make the plan again.")


def _reason(resolved: Path, *, check: bool | None) -> str | None:
    if check is not None:
        return "that was asked for" if check else None
    try:
        return reason_to_distrust_path(resolved)
    except (FileNotFoundError, NotADirectoryError):
        # The reader of the plan reports what is missing.
        return None
    except OSError as error:
        return f"whose it is cannot be seen ({error.strerror})"


def _copy(folder: Path, copy: Path) -> None:
    left = _MOST_BYTES
    try:
        for path in sorted(folder.iterdir()):
            if not is_plan_file(path.name):
                raise _refused(folder, f"{path.name!r} is no file of a plan.")
            with open_regular(path) as source, (copy / path.name).open("wb") as target:
                left -= source.seek(0, os.SEEK_END)
                source.seek(0)
                if left < 0:
                    raise _refused(folder, f"It has more than {_MOST_BYTES:,} bytes.")
                shutil.copyfileobj(source, target)
    except OSError as error:
        raise ForeignPlanError(
            f"The plan {folder} cannot be read: {error.filename}: {error.strerror}."
        ) from error
