# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What several files of this folder need."""

import pytest

from switchgnn.topologies import Backend


@pytest.fixture
def not_compiled(monkeypatch):
    """Interpret programs that are used once: compiling one takes longer than its test."""
    monkeypatch.setenv("SWITCHGNN_BACKEND", Backend.PYTHON.value)
