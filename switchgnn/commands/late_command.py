# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Subcommands whose modules are imported when one is chosen, not when all are listed.

What a command needs, such as gRPC and SciPy, takes most of a second; a list of commands,
``--version`` and what a shell completes need none of it.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand


@dataclass(frozen=True)
class Late:
    """A subcommand that is known by its line in the list of commands.

    Attributes:
        name: how it is called.
        panel: the panel of the list that it stands in.
        help: its line there, which is also the first of its own help.
        elsewhere: its module, where that is not in the folder of its name. The module has a
            ``typer.Typer`` named ``app``.
    """

    name: str
    panel: str
    help: str
    elsewhere: str | None = None

    @property
    def module(self) -> str:
        """Where the command is."""
        return self.elsewhere or f"switchgnn.commands.{self.name}.command"

    def load(self) -> typer.Typer:
        """Import the command."""
        found = importlib.import_module(self.module).app
        if not isinstance(found, typer.Typer):
            raise TypeError(f"{self.module}.app is no typer.Typer")
        return found

    def add_to(self, app: typer.Typer) -> None:
        """Let an application list the command, and run it when it is chosen."""
        made = app.command(self.name, cls=_Standing, help=self.help, rich_help_panel=self.panel)
        load: Callable[[], typer.Typer] = self.load
        made(load)


class _Standing(TyperCommand):
    """Stands in the list of commands; its callback returns the application that it stands for."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:  # noqa: ANN401
        """Begin the command itself in place of this one."""
        if self.callback is None:
            raise TypeError(f"{self.name} stands for nothing")
        command = typer.main.get_command(self.callback())
        return command.make_context(info_name, args, *rest, **extra)
