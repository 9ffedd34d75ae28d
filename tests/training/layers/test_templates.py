# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A model leaves no files behind."""

import sys
import tempfile

import pytest

pytest.importorskip("torch_geometric")

from switchgnn.training.layers.models import MODELS, ModelOptions, build_model


@pytest.mark.parametrize("name", MODELS)
def test_a_model_leaves_no_files(name, tmp_path, monkeypatch):
    # As in a process that never made such layers.
    for module in [each for each in sys.modules if each.startswith("torch_geometric.nn.conv.")]:
        if "_propagate" in module:
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    build_model(ModelOptions(model=name), 3, 2)
    assert [module for module in sys.modules if module.endswith("_propagate")]
    assert list(tmp_path.iterdir()) == []
    assert tempfile.gettempdir() == str(tmp_path)
