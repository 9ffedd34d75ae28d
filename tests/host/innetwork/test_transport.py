# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What is checked before a worker sends anything to the switch."""

import pytest

from switchgnn.host.innetwork import transport
from switchgnn.host.innetwork.transport import open_in_network
from switchgnn.host.pace import Pace
from switchgnn.host.transport import WorkerEnd
from switchgnn.host.wire.link import LinkError
from switchgnn.planner import build_plan, load_graph, write_plan
from tests.host.addresses import ADDRESSES


@pytest.mark.parametrize(("lanes", "packet_bytes"), [(8, 78), (32, 174), (256, 1070)])
def test_a_link_must_take_the_widest_frames_of_the_plan(tmp_path, monkeypatch, lanes, packet_bytes):
    plan = build_plan(load_graph("karate"), workers=2, slots=64, program="ab" * 32, lanes=lanes)
    write_plan(plan, tmp_path / "plan")
    end = WorkerEnd(
        *(0, 2, 17, Pace(), "eth:nobody", "", ADDRESSES, ()),
        plan=tmp_path / "plan",
        session=1,
        schedule=None,
        sampling=1.0,
        seed=0,
    )
    asked = []
    monkeypatch.setattr(transport, "check_packets_fit", lambda *what: asked.append(what))
    with pytest.raises(LinkError), open_in_network(end):
        pass
    assert asked == [("eth:nobody", packet_bytes)]
