# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""P4Runtime over TLS with client certificates, on both switches."""

import shutil
import subprocess
import threading
from contextlib import contextmanager

import pytest

from switchgnn.controller import (
    P4RuntimeClient,
    TlsOptions,
    Watched,
    WatchEventKind,
    load_plan,
    star_network,
    watch,
)
from switchgnn.controller.errors import ControllerError, SwitchUnreachableError
from switchgnn.p4src import load_program
from switchgnn.planner.build import build_plan
from switchgnn.planner.graphs.load import load_graph
from switchgnn.topologies import FabricError, Target, TlsFolder, free_tcp_port
from switchgnn.topologies.targets import switch_child, wait_until_serving
from tests.end_to_end.conftest import run_json, switchgnn
from tests.support.commands import nursery
from tests.support.markers import TARGETS, covering
from tests.support.speed import seconds_here

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
# Defects of a folder, and their messages.
EXPIRED, ANOTHER, ELSEWHERE = "expired", "of another authority", "for another name"
OF_A_SWITCH = {
    EXPIRED: "The certificate of the switch at .* is not believed: certificate has expired",
    ANOTHER: "The certificate of the switch at .* is not believed: unable to get local issuer",
    ELSEWHERE: "The certificate of the switch at .* is not believed: IP address mismatch",
}
OF_A_CONTROLLER = (EXPIRED, ANOTHER)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A folder for `--tls`, and another authority's controller in `other`."""
    folder = tmp_path_factory.mktemp("tls")
    make_authority(folder)
    for name in ("switch", "controller"):
        make_certificate(folder, name)
    other = folder / "other"
    other.mkdir()
    make_authority(other)
    for name in ("switch", "controller"):
        make_certificate(other, name)
    return folder


def make_authority(folder):
    openssl(
        *(folder, "req", "-x509", *NEW_KEY, "-keyout", "ca-key.pem"),
        *("-out", "ca.pem", "-days", "2", "-subj", "/CN=authority"),
    )


def make_certificate(folder, name, *, names="IP:127.0.0.1,DNS:localhost", days=2):
    (folder / "names").write_text(f"subjectAltName={names}\n")
    openssl(
        *(folder, "req", *NEW_KEY, "-keyout", f"{name}-key.pem"),
        *("-out", f"{name}.csr", "-subj", f"/CN={name}"),
    )
    openssl(
        *(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca-key.pem"),
        *("-CAcreateserial", "-out", f"{name}.pem", "-days", str(days), "-extfile", "names"),
    )


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def test_a_run(combination, certificates):
    report = run_json(combination, "--graph", "karate", "--tls", certificates)
    assert report["exact"] is True


def test_a_missing_file_is_named(tmp_path):
    result = switchgnn("run", "--graph", "karate", "--fabric", "loopback", "--tls", tmp_path)
    assert result.returncode == 2
    assert "ca.pem" in result.stderr


def test_who_has_no_certificate_of_the_authority_is_refused(certificates, tmp_path):
    address = f"127.0.0.1:{free_tcp_port()}"
    switch = switch_child(
        Target.EMBEDDED,
        ports={},
        grpc_address=address,
        device_id=0,
        log=tmp_path / "switch.log",
        tls=TlsFolder(certificates),
    )
    with switch:
        wait_until_serving(switch, address)
        root = ("--tls-root", certificates / "ca.pem")
        for refused in (root, (*root, *own(certificates / "other"))):
            result = switchgnn(
                "controller", "clear", "--address", address, "--deadline", 2, *refused
            )
            assert result.returncode == 2, refused
        accepted = switchgnn("controller", "clear", "--address", address, *root, *own(certificates))
        # It connects, and there is no program yet.
        assert "program" in accepted.stderr + accepted.stdout


def own(folder):
    return (
        *("--tls-certificate", folder / "controller.pem"),
        *("--tls-key", folder / "controller-key.pem"),
    )


def spoilt(certificates, tmp_path, name, how):
    folder = tmp_path / f"{name} {how}"
    shutil.copytree(certificates, folder)
    if how == ANOTHER:
        for file in (f"{name}.pem", f"{name}-key.pem"):
            shutil.copy(certificates / "other" / file, folder)
    else:
        make_certificate(
            folder, name, **{EXPIRED: {"days": -1}, ELSEWHERE: {"names": "DNS:a"}}[how]
        )
    return folder


@contextmanager
def serving(target, folder, tmp_path, address):
    switch = switch_child(
        target,
        ports={},
        grpc_address=address,
        device_id=0,
        log=tmp_path / "switch.log",
        tls=TlsFolder(folder),
        nursery=nursery(),
    )
    with switch:
        wait_until_serving(switch, address)
        yield switch


def client_of(address, folder):
    tls = TlsFolder(folder)
    options = TlsOptions(tls["ca"], tls["controller"], tls["controller-key"])
    return P4RuntimeClient(address, tls=options, deadline=seconds_here(60))


@pytest.mark.parametrize(("target", "how"), covering(TARGETS, list(OF_A_SWITCH)))
def test_a_switch_that_is_not_believed(target, how, certificates, tmp_path):
    address = f"127.0.0.1:{free_tcp_port()}"
    with (
        serving(target, spoilt(certificates, tmp_path, "switch", how), tmp_path, address),
        pytest.raises(SwitchUnreachableError, match=OF_A_SWITCH[how]),
    ):
        client_of(address, certificates).open()


@pytest.mark.parametrize("target", TARGETS)
def test_a_controller_that_is_not_believed(target, certificates, tmp_path):
    address = f"127.0.0.1:{free_tcp_port()}"
    with serving(target, certificates, tmp_path, address):
        for how in OF_A_CONTROLLER:
            folder = spoilt(certificates, tmp_path, "controller", how)
            with pytest.raises(SwitchUnreachableError, match=r"does not believe .*controller\.pem"):
                client_of(address, folder).open()
        with client_of(address, certificates) as client:
            assert client.get_pipeline_cookie() is None


def test_a_switch_that_speaks_no_tls(certificates, tmp_path):
    address = f"127.0.0.1:{free_tcp_port()}"
    plain = switch_child(
        Target.EMBEDDED, ports={}, grpc_address=address, device_id=0, log=tmp_path / "switch.log"
    )
    with plain:
        wait_until_serving(plain, address)
        with pytest.raises(SwitchUnreachableError, match="does not speak TLS"):
            client_of(address, certificates).open()


@pytest.mark.parametrize("target", TARGETS)
def test_a_switch_that_restarts(target, certificates, tmp_path):
    address, network, program = f"127.0.0.1:{free_tcp_port()}", star_network(2), load_program()
    plan = build_plan(load_graph("karate"), workers=2, slots=64, program=program.digest)
    stop, installed = threading.Event(), threading.Semaphore(0)

    def note(event):
        if event.kind is WatchEventKind.INSTALLED:
            installed.release()

    def follow(client):
        watched = Watched(load_plan((plan.manifest, plan.switch)), network, client)
        watch([watched], program=program, on_event=note, stop=stop, interval=0.1)

    with (
        serving(target, certificates, tmp_path, address) as switch,
        client_of(address, certificates) as client,
    ):
        follower = threading.Thread(target=follow, args=(client,), daemon=True)
        follower.start()
        try:
            assert installed.acquire(timeout=seconds_here())
            switch.stop()
            switch.start()
            assert installed.acquire(timeout=seconds_here())
        finally:
            stop.set()
            follower.join(seconds_here())


@pytest.mark.parametrize("name", ["switch", "controller"])
def test_files_that_do_not_belong_together(name, certificates, tmp_path):
    folder = tmp_path / "folder"
    shutil.copytree(certificates, folder)
    TlsFolder(folder).check()
    shutil.copy(certificates / "other" / f"{name}-key.pem", folder)
    with pytest.raises(ControllerError, match=rf"{name}\.pem and .*{name}-key\.pem are not a cert"):
        TlsFolder(folder).check()
    (folder / "ca.pem").write_text("no certificate")
    with pytest.raises(ControllerError, match=r"ca\.pem holds no certificate of an authority"):
        TlsFolder(folder).check()
    (folder / "ca.pem").unlink()
    with pytest.raises(FabricError, match=r"ca\.pem: --tls needs all five"):
        TlsFolder(folder).check()
