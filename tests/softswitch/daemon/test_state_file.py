# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The state file, restarts from it, and readiness."""

import contextlib
import hashlib
import os
import random
import socket
import struct
import threading

import pytest
from finsy.proto import p4r

from switchgnn.softswitch import Backend, SoftSwitch
from switchgnn.softswitch.daemon import state_file
from switchgnn.softswitch.daemon.serving import forget_ready, notify, ready, restore
from switchgnn.softswitch.daemon.state_file import (
    HEAD,
    MAGIC,
    Keeper,
    check_place,
    open_state,
    write_state,
)
from switchgnn.softswitch.errors import SoftSwitchError, StateFileError
from tests.softswitch.harness import Controller, every_kind, exact, insert, modify, replication
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until


def read(path):
    with open_state(path) as messages:
        return None if messages is None else list(messages)


def file_of(path, body, *, magic=MAGIC, size=None, digest=None):
    head = HEAD.pack(
        magic, len(body) if size is None else size, digest or hashlib.sha256(body).digest()
    )
    path.write_bytes(head + body)
    path.chmod(0o600)
    return path


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


def test_what_is_written_is_read(path):
    assert read(path) is None
    write_state(path, b"config", [b"one", b"", b"three" * 1000])
    assert read(path) == [b"config", b"one", b"", b"three" * 1000]
    write_state(path, b"", ())
    assert read(path) == [b""]
    assert [each.name for each in path.parent.iterdir()] == ["state"]


def test_it_is_for_its_owner_alone(path):
    before = os.umask(0)
    try:
        write_state(path, b"config", ())
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600


def test_every_cut_is_noticed(path):
    write_state(path, b"config", [b"one", b"two"])
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        refused(path)
    path.write_bytes(whole + b"x")
    refused(path)


def test_every_changed_bit_is_noticed(path):
    write_state(path, b"config", [b"one", b"two"])
    whole = path.read_bytes()
    for place in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        path.write_bytes(changed)
        refused(path)


@pytest.mark.parametrize("content", [b"", b"{}", b"x" * 10_000, MAGIC])
def test_another_file(path, content):
    path.write_bytes(content)
    path.chmod(0o600)
    assert "not a state file" in refused(path)


def test_lengths_beyond_the_end(path):
    for length in (4, 5, 0xFFFFFFFF, 1 << 31):
        refused(file_of(path, struct.pack(">I", length) + b"abc"))
    refused(file_of(path, b"ab"))
    refused(file_of(path, b"", size=1 << 62))


def test_a_length_is_checked_before_reading(path, monkeypatch):
    asked = []
    monkeypatch.setattr(state_file, "MOST_MESSAGE_BYTES", 10)
    real = state_file._messages

    class Counting:
        def __init__(self, file):
            self.file = file

        def read(self, size):
            asked.append(size)
            return self.file.read(size)

    monkeypatch.setattr(state_file, "_messages", lambda f, s, p: real(Counting(f), s, p))
    refused(file_of(path, struct.pack(">I", 11) + bytes(11)))
    assert max(asked) <= 10


def test_a_file_that_others_may_write(path):
    write_state(path, b"config", ())
    path.chmod(0o620)
    assert "others may write" in refused(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")
def test_a_file_of_another_user(path):
    write_state(path, b"config", ())
    os.chown(path, 12345, 12345)
    assert "12345" in refused(path)


def test_a_pipe_is_not_waited_for(path):
    os.mkfifo(path)
    refused(path)
    path.unlink()
    path.mkdir()
    refused(path)


def test_a_folder_that_is_not_there(tmp_path):
    nowhere = tmp_path / "nowhere" / "state"
    for call in (lambda: check_place(nowhere), lambda: write_state(nowhere, b"", ())):
        with pytest.raises(StateFileError, match="nowhere"):
            call()


def test_what_was_there_stays_if_writing_fails(path, monkeypatch):
    write_state(path, b"old", ())
    monkeypatch.setattr(state_file, "MOST_BYTES", 100)
    with pytest.raises(StateFileError):
        write_state(path, b"new", [bytes(200)])
    monkeypatch.undo()
    assert read(path) == [b"old"]


def test_a_link_in_its_place_is_not_followed(path):
    other = path.with_name("other")
    other.write_text("mine")
    path.with_name(".state.part").symlink_to(other)
    write_state(path, b"config", ())
    assert other.read_text() == "mine"
    assert read(path) == [b"config"]


def test_random_bytes_behind_a_good_head(path):
    generator = random.Random(7)
    for _ in range(300):
        body = generator.randbytes(generator.randrange(40))
        try:
            read(file_of(path, body))
        except StateFileError as error:
            assert str(path) in str(error)


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


def test_it_is_there_soon_after_a_change(tmp_path):
    path = tmp_path / "state"
    with running(path) as (switch, _), Controller(switch.grpc_address, "tables") as control:
        fill(control)
        wait_until(lambda: kept_entries(path) == 57, "the file")
        control.write(insert(control.table_entry("hit_table", [exact(99)], "answer", [b"\x01"])))
        wait_until(lambda: kept_entries(path) == 58, "the file")


def kept_entries(path):
    with open_state(path) as messages:
        found = [p4r.ReadResponse.FromString(each).entities for each in list(messages or ())[1:]]
    return sum(entity.HasField("table_entry") for each in found for entity in each)


def test_a_switch_without_a_program_stays_without(tmp_path):
    path = tmp_path / "state"
    write_state(path, b"", ())
    with running(path) as (_, restored):
        assert restored is None


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


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([b"\xff\xff"], "invalid P4Runtime messages"),
        ([response(p4r.Entity(table_entry=p4r.TableEntry(table_id=77)))], "refuses an entry"),
        ([response(p4r.Entity(register_entry=p4r.RegisterEntry()))], "controllers cannot set"),
        ([response(p4r.Entity())], "controllers cannot set"),
    ],
)
def test_what_no_controller_could_write_is_refused(tmp_path, messages, words):
    path = tmp_path / "state"
    write_state(path, config().SerializeToString(), messages)
    with pytest.raises(StateFileError, match=words), running(path):
        pass
    # Without the file the switch starts again.
    path.unlink()
    with running(path):
        pass


@pytest.mark.parametrize("program", [b"{}", b"import os", b"\xff" * 100])
def test_a_program_is_held_to_what_one_of_a_controller_is(tmp_path, program):
    path = tmp_path / "state"
    made = config()
    made.p4_device_config = program
    write_state(path, made.SerializeToString(), ())
    with pytest.raises(StateFileError, match="refuses the program"), running(path):
        pass


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


def test_a_controller_is_not_served_before(tmp_path):
    switch, seen = SoftSwitch(), []

    def prepare(service):
        assert switch.grpc_address
        seen.append(threading.current_thread())
        assert service.configs.current is None

    switch.start(prepare)
    switch.stop()
    assert seen == [threading.main_thread()]


ADDRESS = "127.0.0.1:9559"


@pytest.fixture(params=["file", "name"])
def manager(request, tmp_path, monkeypatch):
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(name if request.param == "file" else f"\0{name}")
        sock.settimeout(seconds_here(5))
        monkeypatch.setenv("NOTIFY_SOCKET", name if request.param == "file" else f"@{name}")
        yield sock


def test_systemd_is_notified(manager):
    with ready(ADDRESS, None):
        lines = manager.recv(1000).decode().splitlines()
        assert lines == ["READY=1", f"STATUS=Serves P4Runtime on {ADDRESS}"]
        manager.setblocking(False)
        with pytest.raises(BlockingIOError):
            manager.recv(1000)
    assert manager.recv(1000) == b"STOPPING=1"


@pytest.mark.parametrize("value", [None, "", "relative", "/nowhere/at/all"])
def test_nobody_has_to_listen(value, monkeypatch):
    if value is None:
        monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    else:
        monkeypatch.setenv("NOTIFY_SOCKET", value)
    notify("READY=1")


def test_the_ready_file(tmp_path):
    path = tmp_path / "ready"
    path.write_text("an earlier switch was killed")
    forget_ready(path)
    assert not path.exists()
    with ready(ADDRESS, path):
        assert path.read_text() == f"{ADDRESS}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written(tmp_path):
    with pytest.raises(SoftSwitchError, match="--ready-file"), ready(ADDRESS, tmp_path / "a" / "b"):
        pass
    for wrong in (tmp_path, tmp_path / "a" / "b"):
        with pytest.raises(SoftSwitchError, match="--ready-file"):
            forget_ready(wrong)
