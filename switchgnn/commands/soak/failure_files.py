# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a soak writes of a failure: the smallest scenario that shows it, and its diagram."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from switchgnn.base.errors import SwitchGNNError
from switchgnn.lab.virtual.diagram.drawing import draw
from switchgnn.lab.virtual.diagram.output import svg_of, text_of
from switchgnn.lab.virtual.scenario.scenario import Scenario, scenario_text
from switchgnn.lab.virtual.shrink import Budget, Shrunk, shrink
from switchgnn.lab.virtual.soak import Soak

# Single faults of a scenario with thousands of them take about as many.
_MOST_RUNS = 2_000


@dataclass(frozen=True)
class FailureFiles:
    """What was written of a failure.

    Attributes:
        scenario, text, svg: the files.
        runs: how many runs it took to make the scenario small.
        least: whether nothing more can be taken away from it; otherwise the time was over.
        summary: what is left, in words.
    """

    scenario: str
    text: str
    svg: str
    runs: int
    least: bool
    summary: str

    def sentence(self) -> str:
        """Return what a user wants to know."""
        how = "nothing more can be taken away" if self.least else "the time for more was over"
        return f"{self.summary}, after {self.runs:,} runs; {how}"


def make_folder(folder: Path) -> None:
    """Make the folder for files, if it is not there.

    Raises:
        SwitchGNNError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SwitchGNNError(
            f"{folder} cannot be made ({error.strerror}): give --out another folder."
        ) from error


def write_failure(
    soak: Soak, scenario: Scenario, name: str, folder: Path, goes_on: Callable[[], bool]
) -> FailureFiles | None:
    """Make a scenario that fails small, and write it and its diagram.

    Args:
        soak: lets scenarios happen.
        scenario: it fails.
        name: the invariant that does not hold.
        folder: where the files go.
        goes_on: asked in front of each run.

    Returns:
        What was written; None if there was no time for a single run.

    Raises:
        SwitchGNNError: a file cannot be written.
    """
    shrunk = shrink(scenario, name, soak.run, Budget(_MOST_RUNS, goes_on))
    if shrunk is None:
        return None
    trace = soak.run(shrunk.scenario, keeps_trace=True).trace
    drawing = draw(shrunk.scenario, trace, name)
    stem = folder / f"seed-{scenario.seed}"
    return FailureFiles(
        scenario=_write(stem.with_suffix(".json"), scenario_text(shrunk.scenario)),
        text=_write(stem.with_suffix(".txt"), text_of(drawing)),
        svg=_write(stem.with_suffix(".svg"), svg_of(drawing)),
        runs=shrunk.runs,
        least=shrunk.least,
        summary=_summary(shrunk),
    )


def _write(path: Path, text: str) -> str:
    # Nobody shall take half a file for a whole one.
    fresh = path.with_name(f"{path.name}.part")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise SwitchGNNError(
            f"{path} cannot be written ({error.strerror}): give --out another folder."
        ) from error
    return str(path)


def _summary(shrunk: Shrunk) -> str:
    scenario = shrunk.scenario
    numbers = {
        "worker": scenario.workers,
        "exchange": scenario.exchanges,
        "frame": shrunk.outcome.frames,
        "fault": sum(shrunk.outcome.faults.values()),
    }
    return ", ".join(f"{n:,} {name}{'s' * (n != 1)}" for name, n in numbers.items())
