"""The command that runs a switch, from its start to the signal that ends it."""

import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from tempfile import TemporaryFile

import typer
from finsy.proto import p4r

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import whole_file
from switchgnn.base.options import P4RUNTIME, PORTS, SERVICE, TLS, with_groups
from switchgnn.softswitch.base.errors import PortError, SoftSwitchError
from switchgnn.softswitch.base.ports import DEFAULT_DEPTH, PortSpec, QueueSettings, parse_port
from switchgnn.softswitch.native.build import VARIABLE, Backend
from switchgnn.softswitch.p4runtime.server import P4RuntimeService, ServerTls, socket_path
from switchgnn.softswitch.switch import SoftSwitch

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOG = logging.getLogger("softswitch.readiness")
_NOTIFY_SOCKET = "NOTIFY_SOCKET"
app = typer.Typer(add_completion=False)


class LogLevel(str, Enum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class SwitchOptions:
    """The options of a switch, each documented by its help."""

    grpc: str | None = P4RUNTIME.option(
        "ADDRESS", "Serve P4Runtime at this address: unix:PATH or HOST:PORT."
    )
    port: list[str] | None = PORTS.option(
        "N=WHAT", "Attach port N to eth:INTERFACE or udp:IP:PORT:PEER_IP:PORT; repeatable."
    )
    ready_file: Path | None = SERVICE.option(
        "FILE", "Write the P4Runtime address to this file while the switch serves."
    )
    device_id: int = P4RUNTIME.option("N", "Use this device id of P4Runtime.", default=0, min=0)
    cpu_port: int | None = P4RUNTIME.option(
        "N", "Send packet-ins and packet-outs through this port.", shown="none", min=0, max=510
    )
    queue_depth: int = PORTS.option(
        "N", "An egress queue holds N packets of one class.", default=DEFAULT_DEPTH, min=1
    )
    port_rate: float | None = PORTS.option(
        "NUMBER", "Limit each port to this many packets per second.", shown="any", min=0.001
    )
    port_bandwidth: float | None = PORTS.option(
        "NUMBER", "Limit each port given with --port to this many Mbit/s.", shown="any", min=0.001
    )
    tls_cert: Path | None = TLS.option("FILE", "Identify the server by this certificate (PEM).")
    tls_key: Path | None = TLS.option("FILE", "Use this key (PEM) of the server.")
    tls_client_ca: Path | None = TLS.option("FILE", "Demand client certificates of this CA (PEM).")
    backend: Backend = SERVICE.option(
        "WHAT",
        "Run programs as native code (C++), python, or auto: native if there is a compiler; also "
        f"set by ${VARIABLE}.",
        default=Backend.AUTO,
        envvar=VARIABLE,
        show_envvar=False,
    )
    log_level: LogLevel = SERVICE.option(
        "LEVEL",
        "Print messages from this severity on: debug, info, warning or error.",
        default=LogLevel.WARNING,
    )


@contextmanager
def stop_signals() -> Iterator[Callable[[], signal.Signals]]:
    """Catch SIGINT and SIGTERM in the main thread, and yield a function that waits for one.

    A handler that sets a ``threading.Event`` is unreliable: due just before the main thread
    sleeps on the event, it never runs (https://github.com/python/cpython/issues/98140), and while
    the main thread holds the event's lock, it deadlocks. Bytes that the interpreter writes to
    a socket stay there, whichever thread received the signal.
    """
    notices, writer = socket.socketpair()
    with notices, writer:
        writer.setblocking(False)
        # One signal is enough, so a full socket does no harm.
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        for number in STOP_SIGNALS:
            # Without a handler the process would end at once. It stays, so that another signal
            # does not disturb the shutdown.
            signal.signal(number, lambda _number, _frame: None)
        numbers = iter(lambda: notices.recv(1)[0], None)
        try:
            yield lambda: signal.Signals(next(each for each in numbers if each in STOP_SIGNALS))
        finally:
            signal.set_wakeup_fd(-1)


def notify(state: str) -> None:
    """Send a state to systemd, if it started this process; see sd_notify(3)."""
    address = os.environ.get(_NOTIFY_SOCKET, "")
    if not address.startswith(("/", "@")):
        return
    # A name that begins with @ is abstract.
    name = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
            sock.sendto(state.encode(), name)
    except OSError as error:
        _LOG.warning(
            "No service manager listens at %s (%s): %s",
            _NOTIFY_SOCKET,
            address,
            error.strerror or error,
        )


def forget_ready(path: Path) -> None:
    """Remove the ready file of an earlier switch, and check that one can be created."""
    with _explaining_ready(path):
        path.unlink(missing_ok=True)
        TemporaryFile(dir=path.parent).close()


@contextmanager
def ready(address: str, path: Path | None) -> Iterator[None]:
    """Report the switch as ready inside the block."""
    if path is not None:
        with _explaining_ready(path), whole_file(path) as file:
            file.write(f"{address}\n".encode())
    notify(f"READY=1\nSTATUS=Serves P4Runtime on {address}")
    try:
        yield
    finally:
        notify("STOPPING=1")
        if path is not None:
            path.unlink(missing_ok=True)


@contextmanager
def _explaining_ready(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SoftSwitchError(
            f"Cannot write {path}: {error.strerror or error}; choose another file (--ready-file)."
        ) from None


@app.command()
@with_groups
def main(options: SwitchOptions) -> None:
    """Run a software switch until SIGINT or SIGTERM; controllers load its program."""
    try:
        run_switch(options)
    except SwitchGNNError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


def run_switch(
    options: SwitchOptions, program: p4r.ForwardingPipelineConfig | None = None
) -> signal.Signals:
    """Run a switch with a program until SIGINT or SIGTERM; None: wait for a controller's."""
    if options.grpc is None:
        raise SoftSwitchError("Give a P4Runtime address: --grpc unix:PATH or HOST:PORT.")

    def prepare(service: P4RuntimeService) -> None:
        if program is not None:
            action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
            request = p4r.SetForwardingPipelineConfigRequest(action=action, config=program)
            service.configs.set(request)

    with stop_signals() as wait:
        logging.basicConfig(
            level=options.log_level.value.upper(), format="%(levelname)s %(name)s %(message)s"
        )
        switch = _switch(options)
        if options.ready_file is not None:
            forget_ready(options.ready_file)
        switch.start(prepare)
        try:
            # All present objects stay: keep the garbage collector from visiting them.
            gc.freeze()
            _announce(switch, options)
            with ready(switch.grpc_address, options.ready_file):
                number = wait()
        finally:
            ended = switch.stop()
        if not ended:
            # The interpreter would wait for the threads of the remaining calls.
            sys.stdout.flush()
            os._exit(0 if number == signal.SIGTERM else 128 + number)
        return number


def _switch(options: SwitchOptions) -> SoftSwitch:
    certificate, key, tls = options.tls_cert, options.tls_key, None
    if certificate is not None and key is not None:
        tls = ServerTls(certificate, key, options.tls_client_ca)
    elif (certificate, key, options.tls_client_ca) != (None, None, None):
        raise SoftSwitchError("TLS needs both --tls-cert and --tls-key.")
    ports: dict[int, PortSpec] = {}
    for number, spec in map(parse_port, options.port or []):
        if number in ports:
            raise PortError(f"Port {number} is given twice: use each number once.")
        ports[number] = spec
    if options.cpu_port in ports:
        raise PortError(
            f"Port {options.cpu_port} is given as --port and as --cpu-port: change one of the "
            "numbers."
        )
    bandwidth = None if options.port_bandwidth is None else options.port_bandwidth * 1e6
    return SoftSwitch(
        ports,
        device_id=options.device_id,
        grpc=options.grpc,
        cpu_port=options.cpu_port,
        queues=QueueSettings(options.queue_depth, options.port_rate, bandwidth=bandwidth),
        tls=tls,
        backend=options.backend,
    )


def _announce(switch: SoftSwitch, options: SwitchOptions) -> None:
    address = switch.grpc_address
    sys.stdout.write(f"softswitch: device {switch.device_id} serves P4Runtime on {address}\n")
    sys.stdout.flush()
    if socket_path(address) is None and options.tls_client_ca is None:
        sys.stderr.write(
            f"Warning: anybody who can connect to {address}, such as any user of this machine, "
            "can change this switch: use unix:PATH or client certificates (--tls-client-ca).\n"
        )
