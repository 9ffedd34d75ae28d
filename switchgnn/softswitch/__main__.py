# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Lets ``python -m`` run the switch."""

from switchgnn.base.files import open_standard_streams
from switchgnn.softswitch.daemon.command import app

open_standard_streams()
app()
