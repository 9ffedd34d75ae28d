"""Who reaches a switch: no other user of the machine, and over TLS only holders of certificates."""

import os
import shutil
import signal
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from switchgnn.controller import P4RuntimeClient, TlsOptions
from switchgnn.controller.base.errors import ControllerError, SwitchUnreachableError
from switchgnn.topologies import FabricError, Target, TlsFolder, free_tcp_port
from switchgnn.topologies.targets import BMV2_PROGRAM, switch_child, wait_until_serving
from tests.end_to_end.conftest import BOTH_ENDS, MOSTLY_LOOPBACK, run_json, said, succeeded
from tests.support.commands import forkserver, started, switchgnn
from tests.support.listeners import listening, refused_to_nobody, tree_of
from tests.support.markers import TARGETS, needs_root, some_of, words_of
from tests.support.networks import in_network
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

KARATE = ("--graph", "karate", "--workers", "2")


@contextmanager
def kept(combination, tmp_path, *options):
    """Yield the process of a run that keeps its switch, and what it has said."""
    (tmp_path / "t").mkdir()
    words = ("run", *KARATE, "--keep", *options, *words_of(combination))
    with started(*words, log=tmp_path / "log", scratch=tmp_path / "t") as child:
        wait_until(lambda: "Ctrl-C" in said(child) or child.exit_code() is not None)
        yield child, said(child)
        os.kill(child.pid, signal.SIGINT)
        child.wait(seconds_here())


def address_in(words):
    return words.rpartition("P4Runtime on ")[2].partition(";")[0]


@needs_root
@pytest.mark.parametrize("combination", BOTH_ENDS)
def test_nobody_else_reaches_a_run(combination, tmp_path):
    target, _ = combination
    with kept(combination, tmp_path) as (process, words):
        assert "Warning" not in words
        tree = tree_of(process.pid)
        assert listening([os.getpid(), *tree]) == listening([os.getpid()])
        if target == "bmv2":
            switch = {Path(f"/proc/{pid}/exe").resolve().name: pid for pid in tree}[BMV2_PROGRAM]
            reached = listening([switch])
            assert reached or "--thrift-port" not in Path(f"/proc/{switch}/cmdline").read_text()
            for _, port in reached:
                with in_network(f"/proc/{switch}/ns/net"):
                    assert not refused_to_nobody(socket.AF_INET, ("127.0.0.1", port))
                for host in ("127.0.0.1", *own_addresses()):
                    assert refused_to_nobody(socket.AF_INET, (host, port))
        address = address_in(words)
        path = Path(address.removeprefix("unix:"))
        assert path.is_socket()
        assert not path.stat().st_mode & 0o077
        for folder in path.parents:
            # The socket itself must refuse connections, not its folders.
            folder.chmod(folder.stat().st_mode | 0o001)
        assert refused_to_nobody(socket.AF_UNIX, str(path))
        succeeded("controller", "show", "--address", address)
    assert not path.exists()


@pytest.mark.parametrize("combination", MOSTLY_LOOPBACK)
def test_a_port_that_is_asked_for(combination, tmp_path):
    port = free_tcp_port()
    with kept(combination, tmp_path, "--grpc-port", str(port)) as (_, words):
        assert words.count("Warning: every user of this machine") == 1
        assert address_in(words) == f"127.0.0.1:{port}"
        succeeded("controller", "show", "--address", f"127.0.0.1:{port}")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def own_addresses():
    shown = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False)
    return [word for word in shown.stdout.split() if ":" not in word]


NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
# Defects of a folder, and their messages.
EXPIRED, ANOTHER, ELSEWHERE = "expired", "of another authority", "for another name"
OF_A_SWITCH = {
    EXPIRED: "certificate has expired",
    ANOTHER: "unable to get local issuer certificate",
    ELSEWHERE: "Hostname Verification Check failed",
}
OF_A_CONTROLLER = (EXPIRED, ANOTHER)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A folder for `--tls`, and another authority's controller in `other`."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    (folder / "other").mkdir()
    for where in (folder, folder / "other"):
        openssl(
            *(where, "req", "-x509", *NEW_KEY, "-keyout", "ca-key.pem"),
            *("-out", "ca.pem", "-days", "2", "-subj", "/CN=authority"),
        )
        for name in ("switch", "controller"):
            make_certificate(where, name)
    return folder


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


@pytest.mark.parametrize("combination", BOTH_ENDS)
def test_a_run_over_tls(combination, certificates):
    run_json(combination, "--graph", "karate", "--tls", certificates)


def test_who_has_no_certificate_of_the_authority_is_refused(certificates, tmp_path):
    with serving(Target.EMBEDDED, certificates, tmp_path) as (_, address):
        root = ("--tls-root", certificates / "ca.pem")
        clear = ("controller", "clear", "--address", address)
        for refused in (root, (*root, *own(certificates / "other"))):
            assert switchgnn(*clear, "--deadline", 2, *refused).returncode == 2, refused
        accepted = switchgnn(*clear, *root, *own(certificates))
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
def serving(target, folder, tmp_path):
    """Yield a switch and its address; without a folder it serves without TLS."""
    address = f"127.0.0.1:{free_tcp_port()}"
    switch = switch_child(
        target,
        ports={},
        grpc_address=address,
        log=tmp_path / "switch.log",
        tls=folder and TlsFolder(folder),
        forkserver=forkserver(),
    )
    with switch:
        wait_until_serving(switch, address)
        yield switch, address


def client_of(address, folder):
    tls = TlsFolder(folder)
    options = TlsOptions(tls["ca"], tls["controller"], tls["controller-key"])
    return P4RuntimeClient(address, tls=options, deadline=seconds_here(2))


@pytest.mark.parametrize(
    ("target", "how"),
    some_of(lambda target, how: target == 0 or how == 0, TARGETS, list(OF_A_SWITCH)),
)
def test_a_switch_that_is_not_believed(target, how, certificates, tmp_path):
    with (
        serving(target, spoilt(certificates, tmp_path, "switch", how), tmp_path) as (_, address),
        pytest.raises(SwitchUnreachableError, match=OF_A_SWITCH[how]),
    ):
        client_of(address, certificates).open()


@pytest.mark.parametrize("target", TARGETS)
def test_a_controller_that_is_not_believed(target, certificates, tmp_path):
    with serving(target, certificates, tmp_path) as (_, address):
        for how in OF_A_CONTROLLER:
            folder = spoilt(certificates, tmp_path, "controller", how)
            with pytest.raises(SwitchUnreachableError, match=r"No switch answers .*with TLS; "):
                client_of(address, folder).open()
        with client_of(address, certificates) as client:
            assert client.get_pipeline_cookie() is None


def test_a_switch_that_speaks_no_tls(certificates, tmp_path):
    with (
        serving(Target.EMBEDDED, None, tmp_path) as (_, address),
        pytest.raises(SwitchUnreachableError, match=r"with TLS; .*(?i:ssl|handshake)"),
    ):
        client_of(address, certificates).open()


def test_files_that_do_not_belong_together(certificates, tmp_path):
    folder = tmp_path / "folder"
    shutil.copytree(certificates, folder)
    TlsFolder(folder).check()
    for name in ("controller", "switch"):
        shutil.copy(certificates / "other" / f"{name}-key.pem", folder)
        with pytest.raises(ControllerError, match=rf"{name}\.pem with the key .*{name}-key\.pem"):
            TlsFolder(folder).check()
        shutil.copy(certificates / f"{name}-key.pem", folder)
    (folder / "ca.pem").write_text("no certificate")
    with pytest.raises(ControllerError, match=r"ca\.pem cannot be used"):
        TlsFolder(folder).check()
    (folder / "ca.pem").unlink()
    with pytest.raises(FabricError, match=r"ca\.pem: --tls needs all five"):
        TlsFolder(folder).check()
