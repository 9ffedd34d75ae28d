# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The fields of a group become options, and the command gets the object."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from switchgnn.base.options import option, show_all_options, with_groups, with_short_help


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


@dataclass(frozen=True, kw_only=True)
class Trip:
    place: Place
    days: int = option(None, "N", "How long.", min=1, default=3)
    guide: str | None = option("People", "NAME", "Who leads.", shown="nobody")


@pytest.fixture
def trip(told):
    found = typer.Typer()

    @found.command()
    @with_short_help("host", "days")
    def travel(trip: Trip) -> None:
        """Travel."""
        told.append(trip)

    return found


def test_groups_of_groups_and_options_of_fields(trip, told):
    assert run(trip, "--host", "a").exit_code == 0
    assert run(trip, "--host", "a", "--days", "5", "--guide", "b", "--port", "7").exit_code == 0
    assert run(trip, "--host", "a", "--days", "0").exit_code == 2
    assert told == [Trip(place=Place("a")), Trip(place=Place("a", 7), days=5, guide="b")]


def test_the_short_help_and_that_of_all_options(trip):
    short, long = run(trip, "--help").output, run(trip, "--help-all").output
    for words in ("--host", "--days", "How long.", "[default: 3]", "--help-all"):
        assert words in short
        assert words in long
    for words in ("--port", "--guide", "People", "[default: (nobody)]"):
        assert words not in short
        assert words in long


def test_pages_show_all_options(trip):
    command = typer.main.get_command(trip)
    show_all_options(command)
    assert not any(each.hidden for each in command.params)
