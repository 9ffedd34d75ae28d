# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A plan that others may have made is checked before it is simulated: the models trust arrays."""

from dataclasses import replace

import numpy as np
import pytest

from switchgnn.lab.simulator import NetworkOptions
from switchgnn.lab.simulator.errors import SimulatorError
from switchgnn.lab.simulator.request import SimulateOptions
from switchgnn.lab.simulator.subject import make_subject
from switchgnn.p4src import load_program
from switchgnn.planner import build_plan, load_graph, write_plan
from switchgnn.planner.check.foreign import ForeignPlanError
from switchgnn.planner.errors import PlannerError
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


def written_with_some_left(folder, graph):
    left = np.arange(graph.vertices) % 2 == 0
    program = load_program().digest
    write_plan(build_plan(graph, workers=4, slots=20, program=program, left=left), folder)
    return folder


def test_the_graph_of_a_plan_that_leaves_destinations_is_named(tmp_path):
    folder = written_with_some_left(tmp_path / "plan", random_graph(60, 300, 3, directed=True))
    with pytest.raises(SimulatorError, match="name it with --graph"):
        make_subject(options_of(folder), lambda _: None)


def test_another_graph_than_that_of_the_plan_is_refused(tmp_path):
    folder = written_with_some_left(tmp_path / "plan", load_graph("karate"))
    assert make_subject(options_of(folder), lambda _: None).left > 0
    wrong = replace(options_of(folder), graph="random:60:300:3")
    with pytest.raises(PlannerError, match="another graph"):
        make_subject(wrong, lambda _: None)


def test_a_plan_that_leaves_nothing_needs_no_graph(tmp_path):
    graph = load_graph("karate")
    write_plan(
        build_plan(graph, workers=4, slots=20, program=load_program().digest), tmp_path / "plan"
    )
    with pytest.raises(SimulatorError, match="leave --graph out"):
        make_subject(replace(options_of(tmp_path / "plan"), graph="karate"), lambda _: None)
