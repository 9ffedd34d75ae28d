# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""P4Runtime over TLS with client certificates, on both switches."""

import shutil
import subprocess

import pytest

from switchgnn.topologies import Target, TlsFolder, free_tcp_port
from switchgnn.topologies.targets import switch_child, wait_until_serving
from tests.end_to_end.conftest import run_json, switchgnn

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A folder as `--tls` takes it, and another authority's controller in `other`."""
    folder = tmp_path_factory.mktemp("tls")
    make_authority(folder)
    for name in ("switch", "controller"):
        make_certificate(folder, name)
    other = folder / "other"
    other.mkdir()
    make_authority(other)
    make_certificate(other, "controller")
    return folder


def make_authority(folder):
    openssl(
        *(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca-key.pem"),
        *("-out", "ca.pem", "-days", "2", "-subj", "/CN=authority"),
    )


def make_certificate(folder, name):
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    openssl(
        *(folder, "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}-key.pem"),
        *("-out", f"{name}.csr", "-subj", f"/CN={name}"),
    )
    openssl(
        *(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca-key.pem"),
        *("-CAcreateserial", "-out", f"{name}.pem", "-days", "2", "-extfile", "names"),
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
        # It is let in, and told that there is no program yet.
        assert "program" in accepted.stderr + accepted.stdout


def own(folder):
    return (
        *("--tls-certificate", folder / "controller.pem"),
        *("--tls-key", folder / "controller-key.pem"),
    )
