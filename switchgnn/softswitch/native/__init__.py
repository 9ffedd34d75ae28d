# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs programs as C++: the generated Python is translated, compiled, and loaded."""
