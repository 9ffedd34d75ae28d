# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What is exchanged, over what, and what goes wrong: all that a run follows from."""
