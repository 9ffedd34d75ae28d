# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The one error class that the command line shows as a sentence."""


class SwitchGNNError(Exception):
    """A failure the user can act on: what happened, which object, what to do.

    The command line prints the message without a traceback and exits with code 2.

    Attributes:
        details: what it prints above the message, such as the traceback of a user's own code;
            mostly nothing.
    """

    details = ""
