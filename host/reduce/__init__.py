# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All-reduces in the switch: a stream of fragments that all workers contribute to."""
