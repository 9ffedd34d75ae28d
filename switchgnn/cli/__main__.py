# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m switchgnn.cli` is `switchgnn`."""

from switchgnn.cli.main import main

main()
