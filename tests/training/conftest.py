# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Tests that make layers of PyTorch Geometric leave no files of it behind."""

import pytest

from switchgnn.training.layers.pyg_layers import templates_removed


@pytest.fixture(autouse=True)
def _templates():
    """It writes one for each kind of layer, and forgets it."""
    with templates_removed():
        yield
