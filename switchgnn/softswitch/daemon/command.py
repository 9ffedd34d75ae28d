# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The command line of the software switch, and what other commands that run it share with it."""

import ctypes
import logging
import os
import signal
import socket
from pathlib import Path
from types import TracebackType

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.options import with_groups
from switchgnn.softswitch.daemon.options import SwitchOptions
from switchgnn.softswitch.daemon.serving import Beginning, serve
from switchgnn.softswitch.errors import PortError, SoftSwitchError
from switchgnn.softswitch.p4runtime.server import TlsFiles
from switchgnn.softswitch.ports import PortSpec, parse_port
from switchgnn.softswitch.switch import SoftSwitch
from switchgnn.softswitch.traffic_manager import QueueSettings

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_PR_SET_PDEATHSIG = 1


class StopSignals:
    """Notices SIGINT and SIGTERM while it is entered, in the main thread.

    A handler that sets a ``threading.Event`` is not reliable. It runs only between two
    steps of Python, so if it is due just before the main thread sleeps on the event, it is
    never run (https://github.com/python/cpython/issues/98140); and if it runs while the
    main thread has the event's lock, it waits for that lock forever. What the interpreter
    writes to a socket stays there until it is read, in whichever thread the signal arrived.
    """

    def __init__(self) -> None:
        self._notices, self._writer = socket.socketpair()
        self._writer.setblocking(False)

    def __enter__(self) -> "StopSignals":
        # One signal is enough, so it does not matter when the socket is full of them.
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in STOP_SIGNALS:
            # Without a handler the process would end at once, with nothing written.
            signal.signal(number, lambda _number, _frame: None)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        # The handlers stay, so that another signal does not disturb the end of the process.
        signal.set_wakeup_fd(-1)
        self._notices.close()
        self._writer.close()

    def wait(self) -> signal.Signals:
        """Return the signal that has come once there is one, also when it came before this call."""
        while (number := self._notices.recv(1)[0]) not in STOP_SIGNALS:
            pass
        return signal.Signals(number)


def stop_with_parent() -> None:
    """Let this process receive SIGTERM when the thread that started it ends."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # The parent may have ended before the request above reached the kernel.
    if os.getppid() != parent or parent == 1:
        signal.raise_signal(signal.SIGTERM)


app = typer.Typer(add_completion=False)


@app.command()
@with_groups
def main(options: SwitchOptions) -> None:
    """Run a software switch until SIGINT or SIGTERM; controllers load its program."""
    try:
        run_switch(options, Beginning(state=options.state, interval=options.state_interval))
    except SwitchGNNError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


def run_switch(options: SwitchOptions, beginning: Beginning) -> signal.Signals:
    """Run a switch until SIGINT or SIGTERM.

    Args:
        options: how.
        beginning: what it begins with.

    Returns:
        The signal that has ended it.

    Raises:
        SoftSwitchError: it cannot start, or cannot keep its state.
    """
    if options.grpc is None:
        raise SoftSwitchError("Say where to serve P4Runtime: --grpc unix:PATH or HOST:PORT.")
    with StopSignals() as signals:
        if options.exit_with_parent:
            stop_with_parent()
        logging.basicConfig(
            level=options.log_level.value.upper(), format="%(levelname)s %(name)s %(message)s"
        )
        tls = _tls(options.tls_cert, options.tls_key, options.tls_client_ca)
        ports = _ports(options.port or [])
        if options.cpu_port in ports:
            raise PortError(
                f"Port {options.cpu_port} is that of --cpu-port and has a --port, too: give one of "
                "them another number."
            )
        switch = SoftSwitch(
            ports,
            device_id=options.device_id,
            grpc=options.grpc,
            cpu_port=options.cpu_port,
            queues=_queues(options.queue_depth, options.port_rate, options.port_bandwidth),
            tls=tls,
            backend=options.backend,
        )
        return serve(
            switch,
            signals,
            beginning,
            ready_file=options.ready_file,
            open_to_all=tls is None or tls.client_ca is None,
        )


def _ports(texts: list[str]) -> dict[int, PortSpec]:
    ports: dict[int, PortSpec] = {}
    for number, spec in map(parse_port, texts):
        if number in ports:
            raise PortError(f"Port {number} is given twice: use each number once.")
        ports[number] = spec
    return ports


def _queues(depth: int, rate: float | None, megabits: float | None) -> QueueSettings:
    bandwidth = None if megabits is None else megabits * 1e6
    return QueueSettings(depth, rate, bandwidth=bandwidth)


def _tls(certificate: Path | None, key: Path | None, client_ca: Path | None) -> TlsFiles | None:
    if certificate is not None and key is not None:
        return TlsFiles(certificate, key, client_ca)
    if certificate is None and key is None and client_ca is None:
        return None
    raise SoftSwitchError("TLS needs both --tls-cert and --tls-key.")
