# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""SwitchGNN: full-graph GNN neighbour sums, multicast and aggregated in a P4 switch."""

__version__ = "0.4.0"
