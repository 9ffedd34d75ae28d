# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The processes in a network: started as programs, or forked by one that has imported them."""
