# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The one error class that the command line shows as a sentence."""


class SwitchGNNError(Exception):
    """A failure that the user can act on: what failed, on which object, what to do.

    The command line prints the message without a traceback and exits with code 2.

    Attributes:
        details: printed above the message, such as a traceback of the user's code; often empty.
    """

    details = ""
