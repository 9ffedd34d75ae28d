"""P4Runtime over gRPC."""

import json
import queue
import re
import shutil
import subprocess

import grpc
import pytest
from finsy.proto import U128, p4d, p4i, p4r, rpc_code

from switchgnn.controller import P4RuntimeClient
from switchgnn.softswitch import Backend, GrpcAddressError, ServerTls, SoftSwitch
from tests.softswitch.harness import (
    Controller,
    between,
    config_bytes,
    delete,
    every_kind,
    exact,
    insert,
    lpm,
    modify,
    replication,
    ternary,
    update,
)
from tests.softswitch.test_programs import CLONE, MULTICAST, order
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

OK, INVALID, NOT_FOUND, EXISTS = 0, rpc_code.INVALID_ARGUMENT, rpc_code.NOT_FOUND, 6
DENIED, EXHAUSTED, UNIMPLEMENTED = 7, 8, 12


def code_of(call, *arguments, **named):
    with pytest.raises(grpc.RpcError) as caught:
        list(call(*arguments, **named) or ())
    return caught.value.code()


def hit_entry(controller, key, value=1):
    return controller.table_entry("hit_table", [exact(key)], "answer", [bytes([value])])


def test_mixed_batch_reports_every_update(tables):
    tables.write(insert(hit_entry(tables, 1)))
    no_parameter = tables.table_entry("hit_table", [exact(9)], "answer")
    too_wide = tables.table_entry("hit_table", [exact(9)], "answer", [b"\x01\x00\x00"])
    unknown = p4r.TableEntry(table_id=0x02FFFFFF)
    codes = tables.failed_write(
        *(insert(hit_entry(tables, 2)), insert(hit_entry(tables, 1)), modify(hit_entry(tables, 3))),
        *(delete(hit_entry(tables, 3)), insert(no_parameter), insert(too_wide), insert(unknown)),
        insert(tables.table_entry("hit_table", [exact(9)], "refuse")),
        insert(tables.table_entry("hit_table", [], "answer", [b"\x01"])),
        p4r.Update(entity=p4r.Entity(table_entry=hit_entry(tables, 5))),
        p4r.Update(type=p4r.Update.INSERT),
        modify(hit_entry(tables, 1, 5)),
    )
    assert codes == [
        OK, EXISTS, NOT_FOUND, NOT_FOUND, INVALID, INVALID, NOT_FOUND, INVALID, INVALID, INVALID,
        UNIMPLEMENTED, OK,
    ]  # fmt: skip
    entries = tables.read(table_entry=p4r.TableEntry(table_id=tables.ident("tables", "hit_table")))
    values = {e.table_entry.match[0].exact.value: e.table_entry.action for e in entries}
    assert set(values) == {b"\x01", b"\x02"}
    assert values[b"\x01"].action.params[0].value == b"\x05"


def test_full_table_is_exhausted(tables):
    entries = [
        tables.table_entry("exact_table", [exact(n), exact(1)], "counted", [b"\x01"])
        for n in range(5)
    ]
    assert tables.failed_write(*map(insert, entries)) == [OK] * 4 + [EXHAUSTED]
    tables.write(delete(entries[0]), insert(entries[4]))


@pytest.mark.parametrize(
    ("table", "match", "priority"),
    [
        ("ternary_table", ternary(b"\x01", b"\x01"), 0),
        *(("ternary_table", match, 1) for match in (ternary(b"\x03", b"\x01"), exact(1))),
        ("single_lpm_table", lpm(b"\x01", 8), 0),
        ("single_lpm_table", lpm(b"\x01\x00", 8), 3),
        ("range_table", between(b"\x05", b"\x04"), 1),
        ("range_table", between(b"\x00", b"\xff\xff"), 1),
        ("hit_table", {"exact": p4r.FieldMatch.Exact(value=b"\x01\x00\x00")}, 0),
    ],
)
def test_malformed_entries_are_invalid(tables, table, match, priority):
    entry = tables.table_entry(table, [match], "answer", [b"\x01"], priority=priority)
    assert tables.failed_write(insert(entry)) == [INVALID]


def test_entries_read_back_as_written_with_canonical_values(tables):
    entries = every_kind(tables)
    tables.write(*map(insert, entries))
    entries[0].match[0].exact.value = b"\x12"
    entries[0].match[1].exact.value = b"\x05"
    entries[0].action.action.params[0].value = b"\x07"
    entries[1].match[0].exact.value = b"\x03"
    entries[5].match[0].optional.value = b"\x2a"
    read = [e.table_entry for e in tables.read(table_entry=p4r.TableEntry())]
    assert sorted((e for e in read if not e.is_const), key=str) == sorted(entries, key=str)
    assert sum(e.is_const for e in read) == 4
    assert [e.table_entry for e in tables.read(table_entry=entries[3])] == [entries[3]]


def test_default_entries(tables):
    match = ternary(b"\x01", b"\x01")
    entry = tables.table_entry("const_table", [match], "answer", [b"\x01"], priority=1)
    default = tables.table_entry("const_table", [], "answer", [b"\x01"], is_default_action=True)
    assert tables.failed_write(insert(entry), modify(default)) == [DENIED, DENIED]

    def read():
        ident = tables.ident("tables", "plain_default")
        (found,) = tables.read(table_entry=p4r.TableEntry(table_id=ident, is_default_action=True))
        return found.table_entry.action.action.params[0].value

    assert read() == b"\x07"
    default = tables.table_entry("plain_default", [], "answer", [b"\x63"], is_default_action=True)
    tables.write(modify(default))
    assert read() == b"\x63"
    assert tables.failed_write(insert(default), delete(default)) == [INVALID, INVALID]
    default.ClearField("action")
    tables.write(modify(default))
    assert read() == b"\x07"
    everything = tables.read(table_entry=p4r.TableEntry(is_default_action=True))
    assert len(everything) == len(tables.p4info.tables)


def test_registers(switch, tables):
    ident = tables.ident("registers", "cells")
    for index in (3, 3, 2):
        switch.inject(1, bytes([10, 0, index, 0, 0, 0, 0]))
    cells = tables.read(register_entry=p4r.RegisterEntry(register_id=ident))
    values = {c.register_entry.index.index: c.register_entry.data.bitstring for c in cells}
    assert values == dict.fromkeys(range(8), b"\x00") | {3: b"\x02", 2: b"\x01"}
    one = p4r.RegisterEntry(register_id=ident, index=p4r.Index(index=2))
    data = p4d.P4Data(bitstring=b"\x01")
    expected = p4r.RegisterEntry(register_id=ident, index=one.index, data=data)
    assert [c.register_entry for c in tables.read(register_entry=one)] == [expected]
    assert len(tables.read(register_entry=p4r.RegisterEntry())) == 8
    beyond = p4r.RegisterEntry(register_id=ident, index=p4r.Index(index=8))
    assert code_of(tables.read, register_entry=beyond) == grpc.StatusCode.INVALID_ARGUMENT
    assert tables.failed_write(update("MODIFY", register_entry=expected)) == [UNIMPLEMENTED]


def test_direct_counters(switch, tables):
    entry = tables.table_entry("exact_table", [exact(1), exact(2)], "counted", [b"\x05"])
    tables.write(insert(entry))
    for key in (1, 1, 1, 1, 9):
        switch.inject(1, bytes([0, 0, key, 0, 0x20, 0, 0]))

    def read():
        wanted = p4r.DirectCounterEntry()
        wanted.table_entry.table_id = entry.table_id
        (found,) = tables.read(direct_counter_entry=wanted)
        return found.direct_counter_entry.data.packet_count

    assert read() == 4
    wanted = p4r.TableEntry(table_id=entry.table_id, counter_data=p4r.CounterData())
    assert tables.read(table_entry=wanted)[0].table_entry.counter_data.byte_count == 28
    tables.write(modify(entry))
    assert read() == 4
    # As clients write entries that they have read.
    entry.counter_data.packet_count = 100
    tables.write(modify(entry))
    assert read() == 4


def test_counters(switch, tables):
    ident = tables.ident("counters", "probes")
    for _ in range(3):
        switch.inject(1, bytes([3, 0, 0, 0, 0, 0, 0]))

    def read():
        rows = tables.read(counter_entry=p4r.CounterEntry(counter_id=ident))
        return {r.counter_entry.index.index: r.counter_entry.data for r in rows}

    assert (read()[3].packet_count, read()[3].byte_count) == (3, 21)
    assert len(read()) == 16


COPIES = [p4r.Replica(egress_port=4, instance=1), p4r.Replica(port=b"\x05", instance=2)]
GROUP = p4r.MulticastGroupEntry(multicast_group_id=1, replicas=COPIES)


def test_groups_and_sessions(tables):
    session = p4r.CloneSessionEntry(session_id=5, replicas=COPIES[:1], packet_length_bytes=64)
    twice = p4r.MulticastGroupEntry(multicast_group_id=2, replicas=COPIES[:1] * 2)
    zero = p4r.MulticastGroupEntry(multicast_group_id=0, replicas=COPIES)
    beyond = p4r.CloneSessionEntry(session_id=6, replicas=[p4r.Replica(egress_port=511)])
    codes = tables.failed_write(
        replication("INSERT", multicast_group_entry=GROUP),
        replication("INSERT", multicast_group_entry=GROUP),
        replication("INSERT", multicast_group_entry=twice),
        replication("INSERT", multicast_group_entry=zero),
        replication("MODIFY", multicast_group_entry=twice),
        replication("INSERT", clone_session_entry=session),
        replication("INSERT", clone_session_entry=beyond),
        replication("DELETE", clone_session_entry=beyond),
    )
    assert codes == [OK, EXISTS, INVALID, INVALID, NOT_FOUND, OK, INVALID, NOT_FOUND]
    everything = tables.read(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry())
    entries = [e.packet_replication_engine_entry for e in everything]
    assert [e.multicast_group_entry for e in entries[:1]] == [GROUP]
    assert [e.clone_session_entry for e in entries[1:]] == [session]
    tables.write(
        replication("DELETE", multicast_group_entry=GROUP),
        replication("DELETE", clone_session_entry=session),
    )
    assert tables.read(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry()) == []


def test_packets_are_copied_until_the_group_or_session_is_deleted(switch):
    session = p4r.CloneSessionEntry(session_id=5, replicas=[p4r.Replica(egress_port=6)])
    with Controller(switch.grpc_address, "fates") as controller:
        controller.arbitrate()
        controller.set_config()
        for kind in ("INSERT", "DELETE"):
            controller.write(
                replication(kind, multicast_group_entry=GROUP),
                replication(kind, clone_session_entry=session),
            )
            switch.inject(1, order(MULTICAST))
            switch.inject(1, order(CLONE))
            copied = {4: 1, 5: 1, 6: 1}
            assert {port: switch.counts.unattached[port] for port in copied} == copied


def get_config(controller, kind="ALL"):
    request = p4r.GetForwardingPipelineConfigRequest(
        response_type=p4r.GetForwardingPipelineConfigRequest.ResponseType.Value(kind)
    )
    return controller.stub.GetForwardingPipelineConfig(request).config


def test_nothing_is_installed_at_first_nor_by_refused_programs(controller):
    failed, invalid = grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INVALID_ARGUMENT
    assert code_of(get_config, controller) == failed
    assert code_of(controller.write) == failed
    assert code_of(controller.read, table_entry=p4r.TableEntry()) == failed
    unimplemented = grpc.StatusCode.UNIMPLEMENTED
    assert code_of(controller.set_config, "COMMIT", with_config=False) == unimplemented
    assert code_of(controller.set_config, config=b"{}") == invalid
    meters = config_bytes("tables").replace(b'"meter_arrays":[]', b'"meter_arrays":[{"name":"m"}]')
    assert code_of(controller.set_config, config=meters) == unimplemented
    for table in controller.p4info.tables:
        table.preamble.name += "_of_another"
    assert code_of(controller.set_config) == invalid
    for nothing in (p4i.P4Info(), None):
        controller.p4info = nothing
        assert code_of(controller.set_config) == invalid
    assert code_of(get_config, controller) == failed


def test_a_program_in_the_message_of_older_clients(controller):
    """P4DeviceConfig of https://github.com/p4lang/PI, with `reassign` and `device_data`."""
    program = config_bytes("tables")
    size = bytes([len(program) & 0x7F | 0x80, len(program) >> 7 & 0x7F | 0x80, len(program) >> 14])
    wrapped = b"\x08\x01\x1a" + size + program
    controller.set_config(config=wrapped)
    controller.write(insert(hit_entry(controller, 1)))
    assert get_config(controller).p4_device_config == wrapped


def test_every_response_type(tables):
    full = get_config(tables)
    assert full.cookie.cookie == 42
    assert full.p4info == tables.p4info
    assert full.p4_device_config == config_bytes("tables")
    cookie = get_config(tables, "COOKIE_ONLY")
    assert (cookie.cookie.cookie, cookie.HasField("p4info"), cookie.p4_device_config) == (
        42, False, b"",
    )  # fmt: skip
    assert code_of(tables.set_config, config=b"{}") == grpc.StatusCode.INVALID_ARGUMENT
    assert get_config(tables) == full
    assert not get_config(tables, "P4INFO_AND_COOKIE").p4_device_config
    assert not get_config(tables, "DEVICE_CONFIG_AND_COOKIE").HasField("p4info")


def test_commit_resets_everything(switch, tables):
    group = p4r.MulticastGroupEntry(multicast_group_id=1)
    tables.write(insert(hit_entry(tables, 1)), replication("INSERT", multicast_group_entry=group))
    switch.inject(1, bytes([10, 0, 1, 0, 0, 0, 0]))
    wanted = p4r.TableEntry(table_id=tables.ident("tables", "hit_table"))
    tables.set_config("VERIFY", cookie=43)
    assert get_config(tables).cookie.cookie == 42
    assert len(tables.read(table_entry=wanted)) == 1
    tables.set_config(cookie=44)
    assert get_config(tables).cookie.cookie == 44
    assert tables.read(table_entry=wanted) == []
    cells = tables.read(register_entry=p4r.RegisterEntry())
    assert {c.register_entry.data.bitstring for c in cells} == {b"\x00"}
    assert tables.read(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry()) == []


def without_a_key(controller):
    table = next(t for t in controller.program["pipelines"][0]["tables"] if t.get("entries"))
    del table["entries"][0]["match_key"][0]["key"]


def with_another_parameter(controller):
    next(a for a in controller.p4info.actions if a.params).params.add(id=9, bitwidth=1)


def with_another_key(controller):
    for field in controller.p4info.tables[0].match_fields:
        field.match_type = p4i.MatchField.RANGE


@pytest.mark.parametrize("spoil", [without_a_key, with_another_parameter, with_another_key])
def test_verifying_checks_everything(tables, spoil):
    tables.program = json.loads(config_bytes("tables"))
    spoil(tables)
    config = json.dumps(tables.program).encode()
    with pytest.raises(grpc.RpcError) as caught:
        tables.set_config("VERIFY", config)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert re.search("Table|action '|table '", caught.value.details())
    assert get_config(tables).cookie.cookie == 42


def test_verifying_compiles(tables, backend, monkeypatch):
    monkeypatch.setenv("CXX", "false")
    if backend is Backend.PYTHON:
        tables.set_config("VERIFY")
    else:
        with pytest.raises(grpc.RpcError, match="false cannot compile the program") as caught:
            tables.set_config("VERIFY")
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_the_highest_election_id_is_primary(switch):
    address = switch.grpc_address
    with (
        Controller(address, "tables", 5) as five,
        Controller(address, "tables", 9) as nine,
        Controller(address, "tables", 7) as seven,
    ):
        assert five.arbitrate() == OK
        five.set_config()
        assert nine.arbitrate() == OK
        demoted = five.receive().arbitration
        assert demoted.status.code == rpc_code.ALREADY_EXISTS
        assert U128.decode(demoted.election_id) == 9
        assert seven.arbitrate() == rpc_code.ALREADY_EXISTS
        assert code_of(five.write) == grpc.StatusCode.PERMISSION_DENIED
        assert code_of(five.set_config) == grpc.StatusCode.PERMISSION_DENIED
        nine.write()
        nine.close()
        for backup in (five, seven):
            assert backup.receive().arbitration.status.code == rpc_code.NOT_FOUND
        assert code_of(seven.write) == grpc.StatusCode.PERMISSION_DENIED
        seven.election_id = U128.encode(10)
        seven.send_arbitration()
        assert seven.receive().arbitration.status.code == OK
        seven.write()
        assert len(five.read(table_entry=p4r.TableEntry())) == 4


def test_arbitration_mistakes(switch):
    address = switch.grpc_address
    with Controller(address, election_id=5) as first, Controller(address, election_id=5) as same:
        assert first.arbitrate() == OK
        same.open_stream()
        same.send_arbitration()
        assert same.receive().code() == grpc.StatusCode.INVALID_ARGUMENT
        atomic = p4r.WriteRequest.ROLLBACK_ON_ERROR
        assert code_of(first.write, atomicity=atomic) == grpc.StatusCode.UNIMPLEMENTED
    with Controller(address, device_id=3) as other:
        other.open_stream()
        other.send_arbitration()
        assert other.receive().code() == grpc.StatusCode.NOT_FOUND
        assert code_of(other.write) == grpc.StatusCode.NOT_FOUND
    with Controller(address, election_id=0) as zero:
        assert zero.arbitrate() == rpc_code.NOT_FOUND
        assert code_of(zero.write) == grpc.StatusCode.PERMISSION_DENIED


def test_packets_to_and_from_the_controller(switch):
    with (
        Controller(switch.grpc_address, "controller", 2) as primary,
        Controller(switch.grpc_address, "controller", 1) as backup,
    ):
        assert primary.arbitrate() == OK
        assert backup.arbitrate() == rpc_code.ALREADY_EXISTS
        primary.set_config()
        switch.inject(300, b"hello")
        packet = primary.receive().packet
        assert packet.payload == b"hello"
        values = {m.metadata_id: m.value for m in packet.metadata}
        assert values == {1: b"\x01\x2c", 2: b"\x00", 3: b"\x12\x34"}
        out = p4r.PacketOut(payload=b"world")
        out.metadata.add(metadata_id=1, value=b"\x03")
        out.metadata.add(metadata_id=2, value=b"\x00")
        primary.send(packet=out)
        wait_until(lambda: switch.counts.unattached[3] == 1, "the packet-out")
        backup.send(packet=out)
        error = backup.receive().error
        assert error.canonical_code == rpc_code.PERMISSION_DENIED
        assert error.packet_out.packet_out == out
        out.metadata[1].metadata_id = 7
        primary.send(packet=out)
        assert primary.receive().error.canonical_code == INVALID
        del out.metadata[1]
        primary.send(packet=out)
        wait_until(lambda: switch.counts.unattached[3] == 2, "the packet-out without padding")
        with pytest.raises(queue.Empty):
            backup.responses.get_nowait()


def test_a_certificate_without_an_authority_for_clients(tmp_path):
    """Authorities for both sides are in tests/end_to_end/test_access.py."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make certificates")
    key, pem = tmp_path / "key", tmp_path / "pem"
    subject = ("-subj", "/CN=switch", "-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run(
        ["openssl", "req", "-x509", "-nodes", *subject, "-keyout", key, "-out", pem],
        check=True,
        capture_output=True,
    )
    with SoftSwitch(tls=ServerTls(pem, key)) as switch:
        good = grpc.ssl_channel_credentials(pem.read_bytes())
        with Controller(switch.grpc_address, "tables", credentials=good) as controller:
            assert controller.arbitrate() == OK
        with Controller(switch.grpc_address) as controller:
            call, request = controller.stub.Capabilities, p4r.CapabilitiesRequest()
            assert code_of(call, request, timeout=seconds_here(5)) == grpc.StatusCode.UNAVAILABLE
    with pytest.raises(GrpcAddressError, match="none"):
        SoftSwitch(tls=ServerTls(tmp_path / "none", key)).start()


def test_a_controller_can_tell_the_embedded_switch(switch):
    with P4RuntimeClient(switch.grpc_address, primary=False) as client:
        assert client.embedded


def test_a_p4info_may_name_what_the_compiler_has_removed(controller):
    info = controller.p4info
    for number, kind in enumerate(("table", "register", "counter")):
        item = getattr(info, f"{kind}s").add()
        item.preamble.id, item.preamble.name = 0x7000 + number, f"MyIngress.no_{kind}"
    info.direct_counters.add(direct_table_id=0x7000).preamble.id = 0x7100
    controller.set_config()
    entry = hit_entry(controller, 5)
    controller.write(insert(entry))
    assert len(controller.read(table_entry=p4r.TableEntry())) >= 1
    controller.read(direct_counter_entry=p4r.DirectCounterEntry())
    entry.table_id = 0x7000
    assert controller.failed_write(insert(entry)) == [NOT_FOUND]
    missing = grpc.StatusCode.NOT_FOUND
    assert code_of(controller.read, counter_entry=p4r.CounterEntry(counter_id=0x7002)) == missing
    assert code_of(controller.read, register_entry=p4r.RegisterEntry(register_id=0x7001)) == missing
