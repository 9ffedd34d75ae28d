# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Models, and PyG's layers on the part of a graph that one worker holds."""
