# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What researchers run on top of the core: faults in virtual time, ns-3, figures."""
