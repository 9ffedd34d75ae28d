# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Benchmarks; ``python -m bench`` runs them. docs/benchmarks.md says what they mean."""
