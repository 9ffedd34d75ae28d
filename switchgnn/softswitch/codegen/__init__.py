# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Turns a Program into the Python source of its parser, pipelines and deparser."""
