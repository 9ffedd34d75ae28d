# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Lets ``python -m`` run the switch."""

from switchgnn.softswitch.daemon.serving import app

app()
