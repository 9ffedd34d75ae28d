# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The option that lets workers serve metrics, for all commands that start some."""

from typing import Annotated

import typer

from switchgnn.base.metrics import MetricsError, check_installed, parse_place
from switchgnn.base.options import OUTPUT

_LAST_PORT = 65_535

MetricsOption = Annotated[
    str | None,
    typer.Option(
        metavar="[ADDRESS:]PORT",
        rich_help_panel=OUTPUT,
        show_default=False,
        help="Worker w serves metrics to Prometheus on PORT + w of that address, or of loopback.",
    ),
]


def find_metrics(text: str | None, workers: int) -> tuple[str, int] | None:
    """Return where worker 0 serves metrics; None: nobody does.

    Args:
        text: what a user has written.
        workers: their number; each takes a port.

    Returns:
        An address and a port.

    Raises:
        MetricsError: it is no place, the ports are too few, or the package for it is missing.
    """
    if text is None:
        return None
    host, port = parse_place(text)
    if not 0 < port <= _LAST_PORT - workers + 1:
        raise MetricsError(
            f"Metrics of {workers} workers cannot be served from port {port} on: choose one from "
            f"1 to {_LAST_PORT - workers + 1}."
        )
    check_installed()
    return host, port
