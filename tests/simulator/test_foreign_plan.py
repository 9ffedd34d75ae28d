# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A plan that others may have made is checked before it is simulated: the models trust arrays."""

import pytest

from switchgnn.p4src import load_program
from switchgnn.planner import build_plan
from switchgnn.planner.check.foreign import ForeignPlanError
from switchgnn.simulator import NetworkOptions
from switchgnn.simulator.request import SimulateOptions
from switchgnn.simulator.subject import make_subject
from tests.planner.forgery import content_of, write_content
from tests.planner.helpers import random_graph


@pytest.mark.parametrize("worker", [4, 200])
def test_a_sum_for_a_worker_that_is_not_there(tmp_path, worker):
    """The models would write beyond the end of their arrays."""
    graph = random_graph(60, 300, 3, directed=True)
    plan = build_plan(graph, workers=4, slots=20, program=load_program().digest)
    content = content_of(plan)
    content["switch"]["result_worker"][0] = worker
    folder = write_content(content, tmp_path / "plan")
    folder.chmod(0o777)
    options = SimulateOptions(
        plan=folder,
        graph=None,
        workers=None,
        slots=None,
        system=None,
        layers=1,
        features=32,
        seed=0,
        network=NetworkOptions(),
    )
    said = []
    with pytest.raises(ForeignPlanError, match="is not used"):
        make_subject(options, said.append)
    assert f"Checking the plan {folder} first: others may write to {folder}." in said
