# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn simulate`: a plan, or a system, packet by packet in ns-3."""
