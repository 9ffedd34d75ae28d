"""The connection to a switch, and its errors as sentences."""

import os
import threading

import pytest
from finsy.proto import rpc_code

from switchgnn.base.network import star_network
from switchgnn.controller import ControllerError, P4RuntimeClient, TlsOptions
from switchgnn.controller.base.errors import (
    NotPrimaryError,
    SwitchUnreachableError,
    WriteRefusedError,
)
from switchgnn.controller.controls.access import Source
from switchgnn.controller.p4runtime.rows import INSERT, row_update
from switchgnn.softswitch import SoftSwitch
from tests.controller.plans import make_plan
from tests.support.markers import needs_root
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until


@pytest.fixture
def loaded(client, program):
    client.set_pipeline(program, 7)
    return client


@pytest.fixture
def updates(layout):
    rows = Source(layout).rows(make_plan(sources=6), star_network(3))
    return [row_update(INSERT, rows.table, row) for row in rows.data]


def test_nobody_there():
    with pytest.raises(SwitchUnreachableError, match=r"127.0.0.1:1 \(without TLS\) within 0.2 s"):
        P4RuntimeClient("127.0.0.1:1", deadline=0.2).open()


@pytest.mark.whole
def test_ctrl_c_at_the_very_beginning_of_a_call_ends_the_client(fake, monkeypatch):
    """A call that gRPC has begun, but whose events nobody reads, never ends."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("grpc._channel._run_channel_spin_thread", interrupted)
    client = P4RuntimeClient(fake.address, deadline=seconds_here(3))
    done = threading.Event()

    def use():
        with pytest.raises(KeyboardInterrupt):
            client.open()
        done.set()

    threading.Thread(target=use, daemon=True).start()
    assert done.wait(seconds_here())


@pytest.mark.parametrize(
    ("name", "words"),
    [("nothing.sock", "there is no socket .*nothing.sock"), ("x" * 108, "at most 107 bytes")],
)
def test_no_socket_there(name, words, tmp_path):
    with pytest.raises(ControllerError, match=words):
        P4RuntimeClient(f"unix:{tmp_path / name}", deadline=0.2).open()


def test_over_a_socket_whatever_its_name(tmp_path):
    address = f"unix:{tmp_path}/a switch 100%.sock"
    with SoftSwitch(grpc=address), P4RuntimeClient(address, deadline=seconds_here(3)) as client:
        assert client.alive
        assert client.address == address


@needs_root
def test_a_switch_of_another_user_is_not_believed(tmp_path):
    """Where all may make sockets, as in /tmp, anybody can wait under the name of a switch."""
    path = tmp_path / "switch.sock"
    with SoftSwitch(grpc=f"unix:{path}"):
        os.chown(path, 12345, 12345)
        with pytest.raises(ControllerError, match="it belongs to user 12345"):
            P4RuntimeClient(f"unix:{path}", deadline=seconds_here(3)).open()


def test_another_primary(fake):
    fake.foreign_primary = 9
    with pytest.raises(NotPrimaryError, match=f"{fake.address} is under the control of somebody"):
        P4RuntimeClient(fake.address, deadline=seconds_here(3)).open()


def test_an_observer_needs_no_permission_but_may_not_write(fake, loaded, updates):
    with P4RuntimeClient(fake.address, election_id=5, primary=False) as observer:
        assert observer.get_pipeline_cookie() == 7
        with pytest.raises(NotPrimaryError):
            observer.write(updates)


def test_a_lost_switch_is_noticed(fake, client):
    assert client.alive
    fake.stop()
    wait_until(lambda: not client.alive)


def test_a_switch_that_goes_away(fake, loaded, updates):
    fake.stop()
    with pytest.raises(SwitchUnreachableError, match="went away while writing table source, entry"):
        loaded.write(updates)


def test_a_mixed_batch_names_the_refused_update_only(fake, loaded, updates):
    loaded.write([updates[2]])
    with pytest.raises(WriteRefusedError) as caught:
        loaded.write(updates)
    (failure,) = caught.value.failures
    assert (failure.index, failure.code) == (2, rpc_code.ALREADY_EXISTS)
    assert failure.entry == "table source, entry job 1, src_id 2"
    assert str(caught.value) == (
        f"Switch {fake.address} refused 1 of 6 updates, the first of them table source, entry "
        "job 1, src_id 2: it is there already (ALREADY_EXISTS: exists). Something else writes to "
        "this switch: stop it and install again."
    )
    # Those before and after it are in place.
    assert len(fake.contents.entries) == 6


def test_batches_after_a_refused_one_are_not_sent(fake, loaded, updates):
    loaded.write([updates[0]])
    with pytest.raises(WriteRefusedError):
        loaded.write(updates, batch=1)
    # One more may have been under way.
    assert len(fake.contents.entries) <= 2


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (rpc_code.RESOURCE_EXHAUSTED, "there is no room for it"),
        (rpc_code.UNIMPLEMENTED, "the switch does not support it"),
        (rpc_code.INTERNAL, "The log of the switch may say more"),
        (99, "99: told to fail"),
    ],
)
def test_reasons_in_words(fake, loaded, updates, code, words):
    fake.arm(fail_at=1, fail_code=code)
    with pytest.raises(WriteRefusedError, match=words):
        loaded.write(updates)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"certificate": "c"}, "needs its key"),
        ({"root_certificate": "no.pem"}, r"no\.pem cannot be used \(No such file"),
    ],
)
def test_unusable_certificates(files, words, tmp_path):
    options = TlsOptions(**{name: tmp_path / file for name, file in files.items()})
    with pytest.raises(ControllerError, match=words):
        P4RuntimeClient("127.0.0.1:1", tls=options).open()
