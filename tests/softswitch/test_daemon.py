"""The switch as a process: its state file and restarts from it, readiness, and signals."""

import contextlib
import hashlib
import os
import re
import signal
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r

from switchgnn.softswitch import Backend, SoftSwitch
from switchgnn.softswitch.daemon.serving import (
    STOP_SIGNALS,
    forget_ready,
    ready,
    restore,
    stop_signals,
)
from switchgnn.softswitch.daemon.state_file import HEAD, MAGIC, Keeper, open_state, write_state
from switchgnn.softswitch.errors import SoftSwitchError, StateFileError
from tests.softswitch.harness import (
    DEADLINE,
    Controller,
    every_kind,
    exact,
    insert,
    modify,
    replication,
)
from tests.support.markers import needs_root, whole
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until


def read(path):
    with open_state(path) as messages:
        return None if messages is None else list(messages)


def refused(path):
    with pytest.raises(StateFileError) as caught:
        read(path)
    sentence = str(caught.value)
    assert str(path) in sentence
    assert "\n" not in sentence
    return sentence


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state"


def test_what_is_written_is_read_by_its_owner(path):
    assert read(path) is None
    before = os.umask(0)
    try:
        write_state(path, b"config", [b"one", b"", b"three" * 1000])
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read(path) == [b"config", b"one", b"", b"three" * 1000]
    write_state(path, b"", ())
    assert read(path) == [b""]
    assert [each.name for each in path.parent.iterdir()] == ["state"]


def test_every_changed_bit_and_every_cut_is_noticed(path):
    write_state(path, b"config", [b"one"])
    good = path.read_bytes()
    cuts = [good[:length] for length in range(len(good))]
    flips = [
        good[: bit // 8] + bytes([good[bit // 8] ^ 1 << bit % 8]) + good[bit // 8 + 1 :]
        for bit in range(8 * len(good))
    ]
    for changed in (*cuts, *flips, good + b"x"):
        path.write_bytes(changed)
        refused(path)


@pytest.mark.parametrize(
    "body", [b"ab", *(struct.pack(">I", length) + b"abc" for length in (4, 1 << 31))]
)
def test_lengths_beyond_the_end(path, body):
    path.touch(mode=0o600)
    path.write_bytes(HEAD.pack(MAGIC, len(body), hashlib.sha256(body).digest()) + body)
    refused(path)


def test_a_file_that_others_may_write(path):
    write_state(path, b"config", ())
    path.chmod(0o620)
    assert "others may write" in refused(path)


@needs_root
def test_a_file_of_another_user(path):
    write_state(path, b"config", ())
    os.chown(path, 12345, 12345)
    assert "12345" in refused(path)


def test_a_pipe_is_not_waited_for(path):
    os.mkfifo(path)
    refused(path)


BACKENDS = pytest.mark.parametrize("backend", list(Backend)[:2], indirect=True, ids=lambda b: b)


@contextlib.contextmanager
def running(path, interval=0.0, **options):
    """A switch with a state file, and what it restored."""
    switch, kept = SoftSwitch(**options), {}

    def prepare(service):
        kept["keeper"] = Keeper(path, switch, service.configs, service.changed, interval)
        kept["restored"] = restore(path, switch, service.configs)

    switch.start(prepare)
    try:
        kept["keeper"].start()
        yield switch, kept["restored"]
    finally:
        switch.stop()
        kept["keeper"].stop()


def entities(controller):
    entity = p4r.Entity()
    entity.packet_replication_engine_entry.SetInParent()
    everything = [p4r.Entity(table_entry=p4r.TableEntry()), entity]
    info = controller.p4info
    everything += [
        p4r.Entity(table_entry=p4r.TableEntry(table_id=each.preamble.id, is_default_action=True))
        for each in info.tables
    ]
    request = p4r.ReadRequest(device_id=0, entities=everything)
    found = [each for response in controller.stub.Read(request) for each in response.entities]
    return sorted(each.SerializeToString() for each in found)


def group(ident, *ports):
    replicas = [p4r.Replica(egress_port=port, instance=port + 1) for port in ports]
    entry = p4r.MulticastGroupEntry(multicast_group_id=ident, replicas=replicas)
    return replication("INSERT", multicast_group_entry=entry)


def session(ident, port):
    replica = p4r.Replica(egress_port=port, instance=1)
    entry = p4r.CloneSessionEntry(session_id=ident, replicas=[replica])
    return replication("INSERT", clone_session_entry=entry)


def fill(controller):
    """Entries of every kind of match, a default action, groups and a session."""
    assert controller.arbitrate() == 0
    controller.set_config(cookie=42)
    noted = controller.table_entry("hit_table", [exact(77)], "answer", [b"\5"], metadata=b"a note")
    default = p4r.TableEntry(table_id=noted.table_id, is_default_action=True)
    default.action.CopyFrom(noted.action)
    hits = (
        insert(controller.table_entry("hit_table", [exact(key)], "answer", [bytes([key])]))
        for key in range(1, 50)
    )
    others = map(insert, every_kind(controller))
    copies = (group(7, 1, 2), group(9), session(3, 4))
    controller.write(insert(noted), *hits, *others, modify(default), *copies)


@BACKENDS
def test_reads_are_the_same_after_a_restart(tmp_path, backend):
    path = tmp_path / "state"
    with running(path) as (switch, restored), Controller(switch.grpc_address, "tables") as control:
        assert restored is None
        fill(control)
        before = entities(control)
    with running(path) as (switch, restored), Controller(switch.grpc_address, "tables") as control:
        assert (restored.entries, restored.groups) == (57, 3)
        assert entities(control) == before
        request = p4r.GetForwardingPipelineConfigRequest(device_id=0)
        assert control.stub.GetForwardingPipelineConfig(request).config.cookie.cookie == 42
    with running(path) as (switch, _), Controller(switch.grpc_address, "tables") as control:
        assert entities(control) == before


def config():
    found = p4r.ForwardingPipelineConfig()
    with SoftSwitch() as switch, Controller(switch.grpc_address, "tables") as control:
        assert control.arbitrate() == 0
        control.set_config()
        request = p4r.GetForwardingPipelineConfigRequest(device_id=0)
        found.CopyFrom(control.stub.GetForwardingPipelineConfig(request).config)
    return found


def response(*entries):
    return p4r.ReadResponse(entities=entries).SerializeToString()


NO_PROGRAM = p4r.ForwardingPipelineConfig(p4_device_config=b"import os").SerializeToString()


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([b"\xff\xff"], "invalid P4Runtime messages"),
        ([response(p4r.Entity(table_entry=p4r.TableEntry(table_id=77)))], "refuses an entry"),
        ([response(p4r.Entity(register_entry=p4r.RegisterEntry()))], "controllers cannot set"),
        ([response(p4r.Entity())], "controllers cannot set"),
        (None, "refuses the program"),
    ],
)
def test_what_no_controller_could_write_is_refused(tmp_path, messages, words):
    path = tmp_path / "state"
    if messages is None:
        write_state(path, NO_PROGRAM, ())
    else:
        write_state(path, config().SerializeToString(), messages)
    with pytest.raises(StateFileError, match=words), running(path):
        pass
    # With a file without a program the switch starts again.
    write_state(path, b"", ())
    with running(path) as (_, restored):
        assert restored is None


def test_a_full_disk_is_logged_and_the_switch_continues(tmp_path, caplog):
    folder = tmp_path / "folder"
    folder.mkdir()
    path, moved = folder / "state", tmp_path / "moved"
    with running(path) as (switch, _), Controller(switch.grpc_address, "tables") as control:
        assert control.arbitrate() == 0
        folder.rename(moved)
        control.set_config()
        wait_until(lambda: "cannot be written" in caplog.text, "a warning")
        moved.rename(folder)
        wait_until(path.exists, "the file, as soon as there is room")
    assert caplog.text.count("cannot be written") == 1


ADDRESS = "127.0.0.1:9559"


def test_the_ready_file(tmp_path):
    path = tmp_path / "ready"
    path.write_text("an earlier switch was killed")
    forget_ready(path)
    assert not path.exists()
    with ready(ADDRESS, path):
        assert path.read_text() == f"{ADDRESS}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written(tmp_path):
    for wrong in (tmp_path, tmp_path / "a" / "b"):
        with pytest.raises(SoftSwitchError, match="--ready-file"):
            forget_ready(wrong)


COMMAND = [sys.executable, "-m", "switchgnn.softswitch"]
GRPC = "127.0.0.1:0"


@pytest.fixture
def signals():
    """Restore the handlers of a switch in this process."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def start(*arguments, grpc=GRPC):
    return subprocess.Popen(
        [*COMMAND, "--grpc", grpc, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_before_the_wait_ends_it(signals, number):
    with stop_signals() as wait:
        # More than fit do no harm.
        for _ in range(2000):
            signal.raise_signal(number)
        assert wait() == number


BAD = b"\xff\xff\xff"
METHODS = {
    "Capabilities": "unary_unary",
    "SetForwardingPipelineConfig": "unary_unary",
    "GetForwardingPipelineConfig": "unary_unary",
    "Write": "unary_unary",
    "Read": "unary_stream",
    "StreamChannel": "stream_stream",
}
REPEATS, MOST_GROWTH = 2000, 6 << 10  # KiB; deserializers of gRPC took 38 MiB for as many


def resident(process):
    """Return how many KiB of a process are in memory."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])


def refusal(channel, method):
    """Return the error of a request that is no message."""
    kind = METHODS[method]
    call = getattr(channel, kind)(f"/p4.v1.P4Runtime/{method}")
    with pytest.raises(grpc.RpcError) as caught:
        request = iter([BAD]) if kind.startswith("stream") else BAD
        answer = call(request, timeout=seconds_here(DEADLINE))
        list(answer)
    return caught.value


@whole
@pytest.mark.parametrize("method", METHODS)
def test_undecodable_requests_are_refused_and_forgotten(method):
    with start() as process:
        address = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())[0]
        with grpc.insecure_channel(address) as channel:
            # What the first ones take stays.
            for _ in range(REPEATS // 10):
                assert refusal(channel, method).code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "is not a p4.v1." in refusal(channel, method).details()
            before = resident(process)
            for _ in range(REPEATS):
                refusal(channel, method)
            assert resident(process) < before + MOST_GROWTH
        with Controller(address, "fates") as controller:
            assert controller.arbitrate() == 0
            controller.set_config()
        process.terminate()
        assert process.wait(seconds_here(DEADLINE)) == 0
        assert process.stderr.read().startswith(f"Warning: anybody who can connect to {address}")


@whole
def test_a_call_that_does_not_end_delays_no_signal(tmp_path, monkeypatch):
    compiler, fifo = tmp_path / "compiler", tmp_path / "fifo"
    os.mkfifo(fifo)
    compiler.write_text(f'#!/bin/sh\n[ "$1" = --version ] || read -r _ < "{fifo}"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with start() as process:
        address = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())[0]
        with Controller(address, "fates") as controller, ThreadPoolExecutor(1) as pool:
            assert controller.arbitrate() == 0
            call = pool.submit(controller.set_config)
            with fifo.open("w"):  # the compiler has begun
                process.terminate()
                assert process.wait(seconds_here(DEADLINE)) == 0
            assert isinstance(call.exception(seconds_here(DEADLINE)), grpc.RpcError)
