# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Table entries as people read them."""

from collections.abc import Mapping

from switchgnn.controller.p4runtime.rows import Column

Record = dict[str, int | str]


def records(columns: Mapping[str, Column]) -> list[Record]:
    """Return one record per entry from columns of equal length."""
    names = list(columns)
    values = zip(*columns.values(), strict=True)
    return [dict(zip(names, map(int, row), strict=True)) for row in values]
