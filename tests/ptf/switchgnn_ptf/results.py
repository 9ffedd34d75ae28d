# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The results of PTF cases: one line of JSON per case."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class CaseResult:
    """The result of one case.

    Attributes:
        case: ``module.Class``.
        failure: the failed assertion, or None.
        error: any other exception, or None.
        known_defect: what the program is known to do wrong here, or None.
        seconds: how long it took.
    """

    case: str
    failure: str | None
    error: str | None
    known_defect: str | None
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether nothing went wrong."""
        return self.failure is None and self.error is None


def append_result(path: Path, result: CaseResult) -> None:
    """Add a line."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(result)) + "\n")


def read_results(path: Path) -> dict[str, CaseResult]:
    """Return the results by case."""
    lines = path.read_text().splitlines() if path.exists() else []
    results = [CaseResult(**json.loads(line)) for line in lines]
    return {result.case: result for result in results}
