# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options that show a run in the browser."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.machine import how_to_install
from switchgnn.base.options import OUTPUT, option
from switchgnn.commands.shared.onlooker import NOBODY, Onlooker

_PACKAGES = ("starlette", "uvicorn")


def check_page_installed(what: str) -> None:
    """Check for the packages of a page before any work."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise SwitchGNNError(
            f"{what} needs the package{'s' if len(missing) > 1 else ''} "
            f"{' and '.join(missing)}: {how_to_install('live')}."
        )


def tell_address(address: str) -> None:
    """Print the address of the page."""
    typer.echo(f"Live: {address}", err=True)


def port_option(text: str) -> Any:  # noqa: ANN401
    """Declare --live-port."""
    return option(OUTPUT, "PORT", text, min=0, max=65_535, shown="any that is free")


@dataclass(frozen=True)
class LiveOptions:
    """Whether to serve a page."""

    live: bool = option(
        OUTPUT,
        None,
        "Show the run as it goes, on a page for a browser on this machine.",
        "--live",
        default=False,
        shown=False,
    )
    live_port: int | None = port_option("Of that page.")

    def check(self) -> None:
        """Check that the page can be served, before any work."""
        if not self.live:
            if self.live_port is not None:
                raise SwitchGNNError("--live-port is the port of a page: add --live.")
            return
        check_page_installed("--live")

    @contextmanager
    def looked_at(self, title: str, *, epochs: int = 0) -> Iterator[Onlooker]:
        """Serve the page during the block, if it is wanted, and print its address."""
        if not self.live:
            yield NOBODY
            return
        # It needs packages that most runs do without.
        from switchgnn.commands.shared.live_page import served  # noqa: PLC0415

        with served(title, port=self.live_port or 0, epochs=epochs) as (onlooker, address):
            tell_address(address)
            yield onlooker
