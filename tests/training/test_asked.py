# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the options of a training mean."""

import pytest

pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from switchgnn.training.asked import AskedTraining


@pytest.mark.parametrize(
    ("options", "own", "share"),
    [({}, False, 0.5), ({}, True, 0.0), ({"input_dropout": 0.25}, True, 0.25)],
)
def test_a_model_of_ones_own_gets_no_dropout_of_inputs_unless_it_is_asked_for(
    tmp_path, options, own, share
):
    (tmp_path / "net.py").write_text("")
    model = f"{tmp_path / 'net.py'}:Net" if own else "gcn"
    asked = AskedTraining(model=model, **options)
    assert asked.options(asked.shape(), 0).input_dropout == share
