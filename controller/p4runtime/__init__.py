# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One switch over P4Runtime: connection, messages, and the state it holds."""
