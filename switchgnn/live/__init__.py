# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A page in the browser that shows a run as it goes: what is known, and what serves it.

Every event that a page gets has all that it draws, so a page that comes late, or again, misses
nothing, and nobody has to keep what a slow one has not read.
"""
