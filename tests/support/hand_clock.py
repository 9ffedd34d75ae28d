# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A clock that a test moves by hand."""


class HandClock:
    """Stands still until it is told to go on.

    Attributes:
        seconds: what it shows.
    """

    def __init__(self, seconds):
        self.seconds = seconds

    def now(self):
        return self.seconds
