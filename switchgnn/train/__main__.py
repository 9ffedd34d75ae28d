# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Lets torchrun run the trainer."""

from switchgnn.training.command import main

if __name__ == "__main__":
    main()
