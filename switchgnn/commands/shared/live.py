# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options that show a run in the browser, the same for all commands that have them."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.machine import how_to_install
from switchgnn.base.options import OUTPUT, option
from switchgnn.commands.shared.onlooker import NOBODY, Onlooker

_PACKAGES = ("starlette", "uvicorn")


def check_page_installed(what: str) -> None:
    """See to it that a page can be served, before anything else is begun.

    Args:
        what: wants it.

    Raises:
        SwitchGNNError: a package for it is missing.
    """
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise SwitchGNNError(
            f"{what} needs the package{'s' if len(missing) > 1 else ''} "
            f"{' and '.join(missing)}: {how_to_install('live')}."
        )


def tell_address(address: str) -> None:
    """Say where the page is."""
    typer.echo(f"Live: {address}", err=True)


@dataclass(frozen=True)
class LiveOptions:
    """The page that somebody wants, or does not."""

    live: bool = option(
        False,
        OUTPUT,
        None,
        "Show the run as it goes, on a page for a browser on this machine.",
        "--live",
        show_default=False,
    )
    live_port: int | None = option(
        None,
        OUTPUT,
        "PORT",
        "Of that page.",
        min=0,
        max=65_535,
        show_default="any that is free",
    )

    def check(self) -> None:
        """See to it that the page can be served, before anything else is begun.

        Raises:
            SwitchGNNError: a package for it is missing, or a port is asked for and no page.
        """
        if not self.live:
            if self.live_port is not None:
                raise SwitchGNNError("--live-port is the port of a page: add --live.")
            return
        check_page_installed("--live")

    @contextmanager
    def looked_at(self, title: str, *, epochs: int = 0) -> Iterator[Onlooker]:
        """Serve the page if it is wanted, and say where it is, as long as the block runs.

        Args:
            title: what runs.
            epochs: how many there are to be; 0: it is no training.

        Yields:
            What is to be told of the run.

        Raises:
            LiveError: nobody can listen there.
        """
        if not self.live:
            yield NOBODY
            return
        # What needs packages that most runs do without.

        from switchgnn.commands.shared.live_page import served  # noqa: PLC0415

        with served(title, port=self.live_port or 0, epochs=epochs) as (onlooker, address):
            tell_address(address)
            yield onlooker
