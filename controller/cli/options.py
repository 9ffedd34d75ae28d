# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options that the controller's commands share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.base.described import read_network
from switchgnn.controller.cli.switches import DEFAULT_ADDRESS, Switches
from switchgnn.controller.controls.congestion import DEFAULT_ECN_THRESHOLD
from switchgnn.controller.p4runtime.client import DEFAULT_DEADLINE
from switchgnn.controller.p4runtime.connection import TlsOptions

SWITCHES, PLAN, OUTPUT = "Switches", "Plan", "Output"
_TLS = "TLS"

PlanFolder = Annotated[
    Path, typer.Argument(metavar="PLAN", help="Folder of the plan.", show_default=False)
]
Addresses = Annotated[
    list[str] | None,
    typer.Option(
        "--address",
        metavar="ADDRESS",
        rich_help_panel=SWITCHES,
        show_default=DEFAULT_ADDRESS,
        help="Of a switch, unix:PATH or HOST:PORT; repeatable.",
    ),
]
ElectionId = Annotated[
    int,
    typer.Option(
        metavar="N", rich_help_panel=SWITCHES, help="The controller with the highest is obeyed."
    ),
]
Deadline = Annotated[
    float,
    typer.Option(
        min=0.1, metavar="SECONDS", rich_help_panel=SWITCHES, help="To wait for an answer."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print JSON.")]


@dataclass(frozen=True)
class Access:
    """How switches are reached; all commands have these options."""

    network: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=SWITCHES,
            show_default=False,
            help="A network file, which says all of this in place of the other options.",
        ),
    ] = None
    device_id: Annotated[
        int, typer.Option(metavar="N", rich_help_panel=SWITCHES, help="The switches' device id.")
    ] = 0
    tls_root: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_TLS,
            show_default=False,
            help="Certificate (PEM) to trust; turns TLS on.",
        ),
    ] = None
    tls_certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_TLS,
            show_default=False,
            help="This controller's certificate (PEM).",
        ),
    ] = None
    tls_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_TLS,
            show_default=False,
            help="Key (PEM) of that certificate.",
        ),
    ] = None

    def switches(
        self,
        address: list[str] | None,
        *,
        election_id: int | None = None,
        deadline: float = DEFAULT_DEADLINE,
    ) -> Switches:
        """Return the switches that are meant.

        Args:
            address: of each, where no network file says it.
            election_id: with which to be obeyed; None: they are only read.
            deadline: seconds to wait for an answer.

        Returns:
            What has a client for each of them.

        Raises:
            NetworkError: the network file cannot be used.
        """
        if self.network is not None and address:
            raise typer.BadParameter("--network says where the switches are: leave out --address")
        return Switches(
            network=None if self.network is None else read_network(self.network),
            addresses=address or [DEFAULT_ADDRESS],
            device_id=self.device_id,
            tls=self._tls(),
            election_id=election_id,
            deadline=deadline,
        )

    def _tls(self) -> TlsOptions | None:
        files = (self.tls_root, self.tls_certificate, self.tls_key)
        return None if files == (None, None, None) else TlsOptions(*files)


@dataclass(frozen=True)
class Installed:
    """How a plan comes to be on switches, once or again and again."""

    leaves: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            rich_help_panel=SWITCHES,
            help="How many of the switches, the first ones, are leaves; 0: none.",
        ),
    ] = 0
    spines: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel=SWITCHES,
            help="How many, the others, are spines; with --leaves.",
        ),
    ] = 1
    ecn_threshold: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            rich_help_panel=PLAN,
            help="Packets in a queue from which on they are marked.",
        ),
    ] = DEFAULT_ECN_THRESHOLD
    largest_feature: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="NUMBER",
            rich_help_panel=PLAN,
            show_default="any of which no sum overflows float32",
            help="The largest magnitude that a worker may report.",
        ),
    ] = None
    check: Annotated[
        bool | None,
        typer.Option(
            "--check/--no-check",
            rich_help_panel=PLAN,
            show_default="if others may have changed it",
            help="Check the plan before it is installed.",
        ),
    ] = None
