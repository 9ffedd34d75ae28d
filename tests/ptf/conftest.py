# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which cases `make test` runs on the Python back end: the first one of each control."""

import pytest

from tests.ptf.switchgnn_ptf.cases import find_cases
from tests.ptf.switchgnn_ptf.targets import ON_PYTHON


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    first = {case.partition(".")[0]: case for case in reversed(find_cases())}
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        case = parameters.get("case")
        if parameters.get("runner") == ON_PYTHON and case and case not in first.values():
            item.add_marker(pytest.mark.full)
