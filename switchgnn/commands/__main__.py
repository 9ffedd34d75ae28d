# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m switchgnn.commands` is `switchgnn`."""

from switchgnn.commands.main import main

if __name__ == "__main__":
    main()
