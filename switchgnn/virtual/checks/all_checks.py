# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All checks."""

from switchgnn.virtual.checks.check import Check
from switchgnn.virtual.checks.ends import Ends
from switchgnn.virtual.checks.sums_exact import SumsExact


def all_checks() -> list[Check]:
    """Return a new one of each."""
    return [SumsExact(), Ends()]
