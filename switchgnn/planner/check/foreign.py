"""Check plans of other users before use: digests do not show who made a plan."""

from collections.abc import Callable
from pathlib import Path

from switchgnn.base.files import reason_to_distrust_path
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.check.plan import check_plan
from switchgnn.planner.plan.files import read_plan
from switchgnn.planner.plan.plan import Plan

# A file of terabytes costs nothing where it has no data in it.
_MOST_BYTES = 4 << 30


def trusted_plan(
    folder: Path, say: Callable[[str], None], *, check: bool | None = None
) -> Path | Plan:
    """Return the folder of a plan of one's own, or the content of another one that is right.

    `check`: whether to check it; None: if other users could have made or changed it.

    Raises:
        PlannerError: a checked plan cannot be read or is wrong.
    """
    # Users who may change a link could redirect it after the check, so it is resolved first.
    resolved = folder.resolve()
    asked = "that was asked for" if check else None
    reason = _reason(resolved) if check is None else asked
    if reason is None:
        return resolved
    say(f"Checking the plan {folder} first: {reason}.")
    try:
        _check_size(folder)
        plan = read_plan(folder)
        check_plan(plan)
    except PlannerError as error:
        raise PlannerError(f"The plan {folder} is not used: {error}") from error
    return plan


def _reason(resolved: Path) -> str | None:
    try:
        return reason_to_distrust_path(resolved)
    except (FileNotFoundError, NotADirectoryError):
        # The reader of the plan reports what is missing.
        return None
    except OSError as error:
        return f"whose it is cannot be seen ({error.strerror})"


def _check_size(folder: Path) -> None:
    try:
        size = sum(path.stat().st_size for path in folder.glob("*"))
    except OSError as error:
        raise PlannerError(f"Cannot read {error.filename}: {error.strerror}.") from error
    if size > _MOST_BYTES:
        raise PlannerError(f"its files have more than {_MOST_BYTES:,} bytes.")
