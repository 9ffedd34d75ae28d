# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Benchmarks, run by ``python -m bench``; docs/evidence/benchmarks.md explains them."""
