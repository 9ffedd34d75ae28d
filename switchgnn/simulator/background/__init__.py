# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Traffic of others, beside the job: how large its flows are, and what became of them."""
