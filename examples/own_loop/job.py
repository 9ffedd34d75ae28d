# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The job of three workers: python job.py."""

from digits import digits

import switchgnn.torch as sg

sg.write_job(digits(), 3, "job", name="digits")
