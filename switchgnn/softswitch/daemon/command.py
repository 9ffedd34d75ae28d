# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The command line of the software switch, shared by all commands that run one."""

import logging
import signal
from pathlib import Path

import typer
from finsy.proto import p4r

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.options import with_groups
from switchgnn.softswitch.daemon.options import SwitchOptions
from switchgnn.softswitch.daemon.serving import Amend, StopSignals, as_it_was, serve
from switchgnn.softswitch.errors import PortError, SoftSwitchError
from switchgnn.softswitch.p4runtime.server import ServerTls
from switchgnn.softswitch.ports import PortSpec, parse_port
from switchgnn.softswitch.switch import SoftSwitch
from switchgnn.softswitch.traffic_manager import QueueSettings

app = typer.Typer(add_completion=False)


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
    options: SwitchOptions,
    program: p4r.ForwardingPipelineConfig | None = None,
    amend: Amend = as_it_was,
) -> signal.Signals:
    """Run a switch until SIGINT or SIGTERM.

    Args:
        options: the options of the switch.
        program: installed if no state was kept; None: wait for a controller.
        amend: changes restored default actions.
    """
    if options.grpc is None:
        raise SoftSwitchError("Give a P4Runtime address: --grpc unix:PATH or HOST:PORT.")
    with StopSignals() as signals:
        logging.basicConfig(
            level=options.log_level.value.upper(), format="%(levelname)s %(name)s %(message)s"
        )
        tls = _tls(options.tls_cert, options.tls_key, options.tls_client_ca)
        ports = _ports(options.port or [])
        if options.cpu_port in ports:
            raise PortError(
                f"Port {options.cpu_port} is given as --port and as --cpu-port: change one of "
                "the numbers."
            )
        megabits = options.port_bandwidth
        switch = SoftSwitch(
            ports,
            device_id=options.device_id,
            grpc=options.grpc,
            cpu_port=options.cpu_port,
            queues=QueueSettings(
                options.queue_depth,
                options.port_rate,
                bandwidth=None if megabits is None else megabits * 1e6,
            ),
            tls=tls,
            backend=options.backend,
        )
        return serve(switch, signals, options, program, amend)


def _ports(texts: list[str]) -> dict[int, PortSpec]:
    ports: dict[int, PortSpec] = {}
    for number, spec in map(parse_port, texts):
        if number in ports:
            raise PortError(f"Port {number} is given twice: use each number once.")
        ports[number] = spec
    return ports


def _tls(certificate: Path | None, key: Path | None, client_ca: Path | None) -> ServerTls | None:
    if certificate is not None and key is not None:
        return ServerTls(certificate, key, client_ca)
    if certificate is None and key is None and client_ca is None:
        return None
    raise SoftSwitchError("TLS needs both --tls-cert and --tls-key.")
