# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The switch as a service: it says when it is ready, and keeps its tables over a restart."""
