# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A run whose diagram is known: its scenario, its trace, and how they are drawn."""
