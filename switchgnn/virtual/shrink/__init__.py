# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A scenario that fails becomes the smallest one that fails in the same way."""
