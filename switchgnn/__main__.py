# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Lets `python -m switchgnn` run `switchgnn`."""

from switchgnn.commands.main import main

if __name__ == "__main__":
    main()
