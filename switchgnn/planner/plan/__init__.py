# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The plan: its parts, its folder on disk, and its parts for leaf-spine."""
