# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs, where they come from, and the edges that cross from worker to worker."""
