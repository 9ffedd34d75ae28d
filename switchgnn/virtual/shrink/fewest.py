# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Lists from which everything is taken away that is not needed."""

from collections.abc import Callable
from typing import TypeVar

Item = TypeVar("Item")


def fewest(
    items: tuple[Item, ...], suffices: Callable[[tuple[Item, ...]], bool]
) -> tuple[Item, ...]:
    """Take away half of the items, a quarter, and so on down to single ones, where the rest does.

    Args:
        items: they suffice.
        suffices: tells whether fewer of them do.

    Returns:
        Those that are left, in their order.
    """
    size = len(items)
    while size:
        place = 0
        while place < len(items):
            rest = items[:place] + items[place + size :]
            if suffices(rest):
                items = rest
            else:
                place += size
        size //= 2
    return items
