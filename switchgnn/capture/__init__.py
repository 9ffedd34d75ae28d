# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Captured packets: reading files and interfaces, decoding, and summaries of a run."""
