# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a switch from its first moment to the signal that ends it."""

import gc
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from finsy.proto import p4r

from switchgnn.softswitch.daemon.keeper import Keeper
from switchgnn.softswitch.daemon.readiness import forget_ready, ready
from switchgnn.softswitch.daemon.restoring import Amend, Restored, as_it_was, load_config, restore
from switchgnn.softswitch.p4runtime.service import P4RuntimeService
from switchgnn.softswitch.p4runtime.unix_socket import socket_path
from switchgnn.softswitch.stopping import StopSignals
from switchgnn.softswitch.switch import SoftSwitch


@dataclass(frozen=True)
class Beginning:
    """What a switch begins with, and keeps.

    Attributes:
        program: what it runs where no state was kept; None: nothing, until a controller comes.
        state: the file that keeps what controllers set; None: none.
        interval: seconds from a change to the file that has it, at least.
        amend: changes the default actions that were kept, before they are written.
    """

    program: p4r.ForwardingPipelineConfig | None = None
    state: Path | None = None
    interval: float = 1.0
    amend: Amend = as_it_was


def serve(
    switch: SoftSwitch,
    signals: StopSignals,
    beginning: Beginning,
    *,
    ready_file: Path | None = None,
    open_to_all: bool = False,
) -> signal.Signals:
    """Run a switch until a signal ends it.

    Args:
        switch: it, not yet started.
        signals: those that end it.
        beginning: what it begins with.
        ready_file: has the address while it serves; None: there is none.
        open_to_all: whether all who reach it may write to it.

    Returns:
        The signal.

    Raises:
        SoftSwitchError: it cannot start, or what it should keep cannot be read or written.
    """
    if ready_file is not None:
        forget_ready(ready_file)
    begun: list[Keeper] = []
    switch.start(lambda service: begun.extend(_begin(switch, service, beginning)))
    try:
        # What exists now stays, so the garbage collector does not have to visit it again.
        gc.freeze()
        for keeper in begun:
            keeper.start()
        address = switch.grpc_address
        _say(f"softswitch: device {switch.device_id} serves P4Runtime on {address}")
        if open_to_all and socket_path(address) is None:
            _warn(address)
        with ready(address, ready_file):
            number = signals.wait()
    finally:
        switch.stop()
    for keeper in begun:
        keeper.stop()
    return number


def _begin(switch: SoftSwitch, service: P4RuntimeService, beginning: Beginning) -> list[Keeper]:
    configs, kept = service.configs, beginning.state
    # A folder that cannot be written to should be known before it is needed.
    keepers = (
        [] if kept is None else [Keeper(kept, switch, configs, service.changed, beginning.interval)]
    )
    restored = None if kept is None else restore(kept, switch, configs, beginning.amend)
    if restored is not None:
        _say(f"softswitch: {_sentence(restored)} from {kept}")
    elif beginning.program is not None:
        load_config(configs, beginning.program)
    return keepers


def _sentence(restored: Restored) -> str:
    return f"restored {restored.entries:,} entries and {restored.groups:,} groups"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _warn(address: str) -> None:
    sys.stderr.write(
        f"Warning: all who reach {address}, such as every user of this machine, may write to this "
        "switch: take unix:PATH, or certificates of clients (--tls-client-ca).\n"
    )
