# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Access to P4Runtime, and limits on idle clients."""

import os
import queue
import socket
import stat
from contextlib import ExitStack, contextmanager

import grpc
import pytest
from finsy.proto import p4r

from switchgnn.softswitch import GrpcAddressError, SoftSwitch
from switchgnn.softswitch.errors import RequestError
from switchgnn.softswitch.p4runtime.arbitration import (
    READS,
    STREAMS,
    STREAMS_PER_CLIENT,
    ReadLimit,
    StreamClient,
    StreamLimits,
    client_of,
)
from tests.softswitch.harness import DEADLINE, Controller, exact, insert
from tests.support.listeners import refused_to_nobody
from tests.support.markers import needs_root
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

IDLE = 45
OK = 0


@contextmanager
def idle_streams(address, count):
    """Yields the calls of streams without requests."""
    waiting = queue.SimpleQueue()
    with Controller(address) as client:
        calls = [client.stub.StreamChannel(iter(waiting.get, None)) for _ in range(count)]
        try:
            yield calls
        finally:
            for call in calls:
                call.cancel()
                waiting.put(None)


def test_idle_streams_hold_up_no_call(switch):
    address = switch.grpc_address
    with Controller(address, "tables") as before, idle_streams(address, IDLE) as calls:
        ended = wait_until(
            lambda: [each for each in calls if each.done()][IDLE - STREAMS_PER_CLIENT - 1 :],
            "all but a few are told to end",
        )
        assert {call.code() for call in ended} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert before.arbitrate() == OK
        before.set_config()
        before.write(insert(before.table_entry("hit_table", [exact(7)], "answer", [b"\1"])))
        assert before.read(table_entry=p4r.TableEntry())
        answer = before.stub.GetForwardingPipelineConfig(
            p4r.GetForwardingPipelineConfigRequest(), timeout=seconds_here(DEADLINE)
        )
        assert answer.config.p4_device_config


def test_streams_in_use_are_not_ended_for_others(switch):
    address = switch.grpc_address
    controllers = [Controller(address, election_id=1 + n) for n in range(STREAMS_PER_CLIENT)]
    try:
        for each in controllers:
            assert each.arbitrate() == OK
        with Controller(address, election_id=99) as late:
            late.open_stream()
            error = late.receive()
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "streams open" in error.details()
        controllers[0].close()

        def has_room():
            with Controller(address, election_id=99) as again:
                again.open_stream()
                again.send_arbitration()
                return not isinstance(again.receive(), grpc.RpcError)

        wait_until(has_room, "the place of the stream that ended")
    finally:
        for each in controllers:
            each.close()


def test_no_client_takes_the_places_of_another():
    limits, greedy = StreamLimits(), [StreamClient() for _ in range(STREAMS_PER_CLIENT + 1)]
    other = StreamClient()
    with ExitStack() as stack:
        stack.enter_context(limits.place_for(other, "ipv4:10.0.0.1:5"))
        for stream in greedy:
            stack.enter_context(limits.place_for(stream, "ipv4:10.0.0.2:6"))
    assert other.outbox.empty()
    assert isinstance(greedy[0].outbox.get_nowait(), RequestError)


def test_many_clients_have_no_more_streams_together():
    limits, streams = StreamLimits(), [StreamClient() for _ in range(STREAMS)]
    with ExitStack() as stack:
        for number, stream in enumerate(streams):
            stream.has_asked = True
            stack.enter_context(limits.place_for(stream, f"ipv4:10.0.0.{number}:5"))
        one_more = limits.place_for(StreamClient(), "ipv4:10.0.1.1:5")
        with pytest.raises(RequestError, match=f"All {STREAMS}"):
            stack.enter_context(one_more)


def test_reads_are_limited():
    limit = ReadLimit()
    with ExitStack() as stack:
        for _ in range(READS):
            stack.enter_context(limit.place())
        with pytest.raises(RequestError, match=f"{READS} reads"):
            stack.enter_context(limit.place())
    with limit.place():
        pass


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        ("ipv4:127.0.0.1:40000", "ipv4:127.0.0.1"),
        ("ipv6:%5B::1%5D:40000", "ipv6:%5B::1%5D"),
        ("unix:", "unix:"),
        ("unix:/run/a:b", "unix:/run/a:b"),
    ],
)
def test_a_client_is_its_host(peer, client):
    assert client_of(peer) == client


def test_a_socket_is_for_its_owner(tmp_path):
    path, before = tmp_path / "p4runtime.sock", os.umask(0)
    try:
        with SoftSwitch(grpc=f"unix:{path}") as switch:
            assert switch.grpc_address == f"unix:{path}"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            with Controller(switch.grpc_address, "tables") as controller:
                assert controller.arbitrate() == OK
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert not path.exists()


@needs_root
def test_another_user_cannot_connect(tmp_path):
    path = tmp_path / "p4runtime.sock"
    with SoftSwitch(grpc=f"unix:{path}"):
        # The folder is open to all; the socket is not.
        for folder in path.parents:
            if not folder.stat().st_mode & stat.S_IXOTH:
                folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
        assert refused_to_nobody(socket.AF_UNIX, str(path))
        path.chmod(0o666)
        assert not refused_to_nobody(socket.AF_UNIX, str(path))


def test_a_socket_in_use_is_not_taken_away(tmp_path):
    address = f"unix:{tmp_path}/p4runtime.sock"
    with SoftSwitch(grpc=address):
        with pytest.raises(GrpcAddressError, match="cannot be used"):
            SoftSwitch(grpc=address).start()
        with Controller(address, "tables") as controller:
            assert controller.arbitrate() == OK


def test_what_a_killed_switch_left_is_replaced(tmp_path):
    path = tmp_path / "p4runtime.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with SoftSwitch(grpc=f"unix:{path}"), Controller(f"unix:{path}", "tables") as controller:
        assert controller.arbitrate() == OK


@pytest.mark.parametrize("path", ["", "x" * 108])
def test_a_path_that_no_socket_can_have_is_refused(path):
    with pytest.raises(GrpcAddressError, match="107 bytes"):
        SoftSwitch(grpc=f"unix:{path}").start()
