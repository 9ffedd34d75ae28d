# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Native back end: generated Python is translated to C++, compiled and loaded."""
