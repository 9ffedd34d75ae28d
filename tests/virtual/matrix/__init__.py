# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Each kind of fault, kill, restart, slow worker and session by itself, in virtual time."""
