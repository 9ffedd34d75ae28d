"""The class for watch.p4, against what p4c says of its table and counter."""

import pytest
from switchgnn.controller.controls.watch import NOBODY, Watch

from switchgnn.controller.base.errors import PlanRefusedError
from switchgnn.controller.p4runtime.layout import Layout

P4INFO = """
tables {
  preamble { id: 1 name: "SwitchIngress.watch.watch" alias: "watch" }
  action_refs { id: 2 }
  initial_default_action { action_id: 2 arguments { param_id: 1 value: "\\000" } }
  size: 1
}
actions {
  preamble { id: 2 name: "SwitchIngress.watch.set_watch" alias: "set_watch" }
  params { id: 1 name: "vertex" bitwidth: 32 }
}
counters {
  preamble { id: 3 name: "SwitchIngress.watch.watched" alias: "watched" }
  spec { unit: PACKETS }
  size: 1
}
"""


@pytest.fixture
def watch():
    return Watch(Layout.from_text(P4INFO))


@pytest.mark.parametrize("vertex", [NOBODY, 1, 2**32 - 1])
def test_a_vertex_comes_back(watch, vertex):
    assert watch.decode(watch.encode(vertex)) == vertex


def test_a_fresh_switch_watches_nobody(watch):
    assert watch.table.default == watch.encode(NOBODY)


def test_a_number_that_does_not_fit_is_refused(watch):
    with pytest.raises(PlanRefusedError):
        watch.encode(2**32)
