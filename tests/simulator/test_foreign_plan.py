# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A plan that others may have made is checked before it is simulated: the models trust arrays."""

import numpy as np
import pytest

from switchgnn.p4src import load_program
from switchgnn.planner import build_plan, write_plan
from switchgnn.planner.check.foreign import ForeignPlanError
from switchgnn.simulator import NetworkOptions
from switchgnn.simulator.errors import SimulatorError
from switchgnn.simulator.request import SimulateOptions
from switchgnn.simulator.subject import make_subject
from tests.planner.forgery import content_of, write_content
from tests.planner.helpers import random_graph


def options_of(folder):
    return SimulateOptions(
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


@pytest.mark.parametrize("worker", [4, 200])
def test_a_sum_for_a_worker_that_is_not_there(tmp_path, worker):
    """The models would write beyond the end of their arrays."""
    graph = random_graph(60, 300, 3, directed=True)
    plan = build_plan(graph, workers=4, slots=20, program=load_program().digest)
    content = content_of(plan)
    content["switch"]["result_worker"][0] = worker
    folder = write_content(content, tmp_path / "plan")
    folder.chmod(0o777)
    options = options_of(folder)
    said = []
    with pytest.raises(ForeignPlanError, match="is not used"):
        make_subject(options, said.append)
    assert f"Checking the plan {folder} first: others may write to {folder}." in said


def test_a_plan_that_leaves_destinations_to_the_hosts_is_refused(tmp_path):
    graph = random_graph(60, 300, 3, directed=True)
    left = np.arange(graph.vertices) % 2 == 0
    plan = build_plan(graph, workers=4, slots=20, program=load_program().digest, left=left)
    write_plan(plan, tmp_path / "plan")
    with pytest.raises(SimulatorError, match="leaves destinations to the hosts"):
        make_subject(options_of(tmp_path / "plan"), lambda _: None)
