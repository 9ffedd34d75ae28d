# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The parts of a run: switches, the controller and workers, each the product's own inside."""
