# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Native back end: programs are rendered as C++, compiled and loaded."""
