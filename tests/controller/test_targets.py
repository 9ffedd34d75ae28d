"""The same on real switches."""

import tempfile
from pathlib import Path

import pytest
from finsy.proto import rpc_code

from switchgnn.base.network import star_network
from switchgnn.base.network_file import Target
from switchgnn.controller import P4RuntimeClient, clear, show_entries
from switchgnn.controller.base.errors import NotPrimaryError, WriteRefusedError
from switchgnn.controller.change import empty_state
from switchgnn.controller.controls.access import Source
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.p4runtime.rows import INSERT, row_update
from switchgnn.topologies.child import Child
from switchgnn.topologies.rpc_address import free_udp_addresses, socket_address
from switchgnn.topologies.targets import switch_command, wait_until_serving
from tests.controller.plans import install, make_plan, observed, same
from tests.support.markers import TARGETS

PLAN = make_plan(1, sources=60, blocks=20)
OTHER = make_plan(2, workers=4, sources=50, blocks=22, results=300)


@pytest.fixture(scope="session", params=TARGETS)
def target(request):
    """The address of a switch in a process of its own, with nothing attached to its ports."""
    with tempfile.TemporaryDirectory() as folder:
        address = socket_address(Path(folder))
        here, there = free_udp_addresses(2)
        ports = {1: f"udp:{here}:{there}"} if request.param is Target.EMBEDDED else {}
        command = switch_command(request.param, ports=ports, grpc_address=address)
        # BMv2's Thrift server would take all interfaces: it gets a network namespace of its own.
        isolated = ["unshare", "--net"] if request.param is Target.BMV2 else []
        with Child("The switch", [*isolated, *command], Path(folder) / "log") as switch:
            wait_until_serving(switch, address)
            yield address


@pytest.fixture
def served(target, network, program):
    """A real switch with PLAN, whatever was there before."""
    with P4RuntimeClient(target) as client:
        install(PLAN, [client], network, program=program)
        yield client


def test_entries_read_back_as_written(served, layout):
    control = Fanout(layout)
    assert show_entries(served, "fanout") == control.records(control.rows(PLAN))


def test_a_mixed_batch(served, layout):
    rows = Source(layout).rows(make_plan(sources=63), star_network(3))
    # 58 and 59 are there already.
    updates = [row_update(INSERT, rows.table, row) for row in rows.data[[60, 58, 61, 59, 62]]]
    with pytest.raises(WriteRefusedError) as caught:
        served.write(updates)
    found = [(each.index, each.entry, each.code) for each in caught.value.failures]
    assert found == [
        (1, "table source, entry job 1, src_id 58", rpc_code.ALREADY_EXISTS),
        (3, "table source, entry job 1, src_id 59", rpc_code.ALREADY_EXISTS),
    ]
    assert [record["src_id"] for record in show_entries(served, "source")] == list(range(63))


def test_a_second_controller_is_turned_away(served, target):
    with pytest.raises(NotPrimaryError, match="under the control of somebody else"):
        P4RuntimeClient(target).open()


def test_a_failure_leaves_the_old_plan(served, target, layout, network, program):
    before = observed(target, layout)
    told = []

    def explode(address, done, total):
        told.append(done)
        if done > 1000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install(OTHER, [served], network, program=program, progress=explode)
    assert max(told) > 1000
    assert same(layout, observed(target, layout), before)


def test_clear_leaves_the_program_only(served, target, layout):
    clear(served)
    assert served.get_pipeline_cookie() is not None
    assert same(layout, observed(target, layout), empty_state(layout))
