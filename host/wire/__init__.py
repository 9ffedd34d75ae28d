# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What is on the wire: headers, frames, addresses, links, and faults on them."""
