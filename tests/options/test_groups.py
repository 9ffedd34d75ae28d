# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The fields of a group become options, and the command gets the object."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from switchgnn.base.options import with_groups


@dataclass(frozen=True)
class Place:
    host: Annotated[str, typer.Option(metavar="NAME", help="Where.")]
    port: Annotated[int, typer.Option(min=1, help="Which port.")] = 80
    tag: Annotated[list[str] | None, typer.Option(help="Any.")] = None


@pytest.fixture
def told():
    return []


@pytest.fixture
def app(told):
    found = typer.Typer()

    @found.command()
    @with_groups
    def visit(
        context: typer.Context,
        what: Annotated[str, typer.Argument()] = "all",
        *,
        place: Place,
        fast: Annotated[bool, typer.Option("--fast")] = False,
    ) -> None:
        """Go there."""
        told.append((context.info_name, what, place, fast))

    return found


def run(app, *words):
    return CliRunner().invoke(app, words)


def test_the_command_gets_objects(app, told):
    assert run(app, "--host", "a").exit_code == 0
    assert run(app, "it", "--host=b", "--port=3", "--tag=x", "--tag=y", "--fast").exit_code == 0
    assert told == [
        ("visit", "all", Place("a"), False),
        ("visit", "it", Place("b", 3, ["x", "y"]), True),
    ]


def test_what_the_options_say_holds(app, told):
    assert "Missing option '--host'" in run(app).output
    assert run(app, "--host", "a", "--port", "0").exit_code == 2
    assert not told
    help_text = run(app, "--help").output
    assert "Go there." in help_text
    for words in ("--host", "NAME", "Which port.", "[default: 80]", "--fast"):
        assert words in help_text


def test_two_options_of_one_name():
    def visit(place: Place, port: int = 1) -> None:
        """Is never called."""

    with pytest.raises(TypeError, match="visit has two options named port"):
        with_groups(visit)
