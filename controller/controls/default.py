# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Default actions that carry a switch's settings, in tables without a key."""

from collections.abc import Mapping

import numpy as np

from switchgnn.controller.p4runtime.layout import Table
from switchgnn.controller.p4runtime.rows import Rows, make_rows


def encode_default(table: Table, action: str, values: Mapping[str, int]) -> bytes:
    """Encode a default action: its id and its parameters.

    Args:
        table: whose default action it is.
        action: its name.
        values: its parameters by name.

    Returns:
        The bytes, as a row of the table would have them.

    Raises:
        PlanRefusedError: a number does not fit its parameter.
    """
    return make_rows(table, action, values, 1).data.tobytes()


def decode_default(table: Table, action: str, default: bytes) -> dict[str, int]:
    """Read the parameters of a default action.

    Args:
        table: whose default action it is.
        action: its name.
        default: the bytes of `encode_default`.

    Returns:
        The parameters by name.
    """
    rows = Rows(table, np.frombuffer(default, np.uint8).reshape(1, -1))
    columns = rows.param_columns(table.action(action))
    return {name: int(column[0]) for name, column in columns.items()}
