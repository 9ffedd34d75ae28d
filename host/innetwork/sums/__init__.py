# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Collects the sums of a block: what comes by itself, and what has to be asked for."""
