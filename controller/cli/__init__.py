# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The controller's command line."""

from switchgnn.controller.cli.commands import app

__all__ = ["app"]
