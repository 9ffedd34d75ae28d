"""The two switches that run the P4 program, as command lines."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from switchgnn.base.machine import python_program
from switchgnn.base.native import find_compiler
from switchgnn.base.network_file import Target
from switchgnn.controller.p4runtime.connection import TlsOptions, grpc_target
from switchgnn.softswitch.native.build import Backend, why_not_kept
from switchgnn.topologies.child import Child, temporary_files_in
from switchgnn.topologies.errors import FabricError
from switchgnn.topologies.forkserver import Forkserver
from switchgnn.topologies.rpc_address import answers, free_tcp_port

BMV2_PROGRAM = "simple_switch_grpc"
_READY_SECONDS = 30.0
_CPU_PORT = 510
# Of p4src/loop.p4. BMv2 drops packets of a class that it does not have.
_PRIORITY_QUEUES = 5
_EMBEDDED_TLS = {"--tls-cert": "switch", "--tls-key": "switch-key", "--tls-client-ca": "ca"}
_BMV2_TLS = {
    "--grpc-server-cert": "switch",
    "--grpc-server-key": "switch-key",
    "--grpc-server-cacert": "ca",
}


class Bmv2Log(str, Enum):
    """The least important lines that BMv2 writes to its log.

    Built with logging macros, as upstream does by default, BMv2 formats all lines at its own
    default, TRACE, even without a log.
    """

    TRACE = "trace"
    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"
    OFF = "off"


@dataclass(frozen=True)
class TlsFolder:
    """Certificates (PEM) for P4Runtime, by fixed names in one folder.

    ``ca.pem`` signs both sides. The switch has ``switch.pem`` and ``switch-key.pem``, the
    controller ``controller.pem`` and ``controller-key.pem``.
    """

    folder: Path

    def __getitem__(self, name: str) -> Path:
        return self.folder / f"{name}.pem"

    def check(self) -> None:
        """Check that all five files exist and match each other.

        Raises:
            FabricError: one is missing.
            ControllerError: one is invalid, or a key does not match its certificate.
        """
        for name in ("ca", "switch", "switch-key", "controller", "controller-key"):
            if not self[name].is_file():
                raise FabricError(f"There is no {self[name]}: --tls needs all five PEM files.")
        for name in ("switch", "controller"):
            TlsOptions(self["ca"], self[name], self[f"{name}-key"]).check()


def bmv2_installed() -> bool:
    """Return whether BMv2 is on the PATH."""
    return shutil.which(BMV2_PROGRAM) is not None


def backend_of_auto() -> str:
    """Return the choice of ``--backend auto`` here, and the reason."""
    compiler = find_compiler()
    if compiler is None:
        return "--backend auto takes python: there is no C++ compiler"
    if (reason := why_not_kept()) is not None:
        return f"--backend auto takes python: {reason}"
    return f"--backend auto takes native, compiled by {compiler}"


def switch_command(
    target: Target,
    *,
    ports: Mapping[int, str],
    grpc_address: str,
    tls: TlsFolder | None = None,
    backend: Backend | None = None,
    bandwidth: float | None = None,
    bmv2_log: Bmv2Log = Bmv2Log.OFF,
) -> list[str]:
    """Return the command that starts a switch without a program.

    `backend`: of the embedded switch; None: as the environment says. `bandwidth`: Mbit/s that the
    embedded switch sends on each port; None: no limit. BMv2 logs to its standard output.
    """
    if target.is_embedded:
        return [
            *python_program("switchgnn.softswitch"),
            *("--device-id", "0", "--grpc", grpc_address),
            *(word for port, link in ports.items() for word in ("--port", f"{port}={link}")),
            *_tls_options(_EMBEDDED_TLS, tls),
            *(() if backend is None else ("--backend", backend.value)),
            *(() if bandwidth is None else ("--port-bandwidth", f"{bandwidth:g}")),
        ]
    interfaces = {port: link.removeprefix("eth:") for port, link in ports.items()}
    return [
        *(BMV2_PROGRAM, "--no-p4", "--device-id", "0"),
        *(word for port, name in interfaces.items() for word in ("-i", f"{port}@{name}")),
        # The default port of its Thrift server, 9090, is the same for all.
        *("--thrift-port", str(free_tcp_port()), "--log-level", bmv2_log.value),
        *(() if bmv2_log is Bmv2Log.OFF else ("--log-console",)),
        *("--", "--grpc-server-addr", grpc_target(grpc_address), "--cpu-port", str(_CPU_PORT)),
        *("--priority-queues", str(_PRIORITY_QUEUES)),
        *_tls_options(_BMV2_TLS, tls),
        *(("--grpc-server-ssl", "--grpc-server-with-client-auth") if tls else ()),
    ]


def _tls_options(names: Mapping[str, str], tls: TlsFolder | None) -> list[str]:
    if tls is None:
        return []
    return [word for option, name in names.items() for word in (option, str(tls[name]))]


def switch_child(
    target: Target,
    *,
    log: Path,
    forkserver: Forkserver | None = None,
    namespace: Path | None = None,
    folder: Path | None = None,
    **command: Any,  # noqa: ANN401
) -> Child:
    """Return the switch as a child process, not yet started; see ``wait_until_serving``.

    For `command` see ``switch_command``. `forkserver`: forks the embedded switch. `namespace`: the
    network namespace of its ports. `folder`: for its temporary files; None: that of the log.
    """
    return Child(
        f"The {target.value} switch",
        switch_command(target, **command),
        log,
        environment=temporary_files_in(folder or log.parent),
        forkserver=forkserver,
        namespace=namespace,
    )


def wait_until_serving(switch: Child, grpc_address: str) -> None:
    """Wait until the switch answers at its gRPC address."""
    switch.wait_until(lambda: answers(grpc_address), _READY_SECONDS)
