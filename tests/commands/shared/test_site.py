# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which plans the switches of a site can serve."""

from types import SimpleNamespace

import pytest

from switchgnn.base.errors import SwitchGNNError
from switchgnn.commands.shared.runner import shares_of
from switchgnn.planner import build_plan, load_graph, write_plan
from switchgnn.topologies.targets import Target


@pytest.mark.parametrize(
    ("target", "lanes", "refused"),
    [(Target.BMV2, 256, True), (Target.BMV2, 128, False), (Target.EMBEDDED, 256, False)],
)
def test_bmv2_gets_no_plan_whose_recalls_would_end_it(tmp_path, target, lanes, refused):
    plan = build_plan(load_graph("karate"), workers=2, slots=64, program="ab" * 32, lanes=lanes)
    write_plan(plan, tmp_path / "plan")
    site = SimpleNamespace(target=target, switches=[SimpleNamespace(network=None)])
    if refused:
        with pytest.raises(SwitchGNNError, match="give --lanes 128"):
            shares_of(tmp_path / "plan", None, site, [None])
    else:
        assert len(shares_of(tmp_path / "plan", None, site, [None])) == 1
