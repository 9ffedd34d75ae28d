# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Public functions say what goes in, what comes out and what can go wrong.

Ruff sees to the first line and to arguments that a docstring forgot; here is what it does not know.
"""

from pathlib import Path

import pytest

from tests.support.docstrings import error_names, incomplete, offered, strange_words

ROOT = Path(__file__).parent.parent
BENCH = ROOT / "bench"
FOLDERS = ("bench", "controller", "host", "p4src", "switchgnn", "topologies")
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))


def test_docstrings_have_their_sections():
    errors = error_names(FILES)
    assert "PlannerError" in errors
    public = offered(FILES)
    assert {"build_plan", "join"} < public
    assert [
        line
        for file in FILES
        if BENCH not in file.parents
        for line in incomplete(file, errors, public)
    ] == []


def test_docstrings_and_comments_are_in_plain_words():
    assert [line for file in FILES for line in strange_words(file)] == []


GOOD = '''
"""A module."""

__all__ = ["Thing", "nothing", "run"]


def unknown(a: int, b: int, c: int) -> int:
    """Return one of them."""
    return a


class MineError(SwitchGNNError):
    """Ours."""


class Thing:
    """A thing.

    Args:
        a: one.
        b: two.
        c: three.
    """

    def __init__(self, a: int, b: int, c: int) -> None:
        self.a = a

    def make(self, a: int, b: int, *, c: int) -> int:
        """Make one.

        Args:
            a: one.
            b: two.
            c: three.

        Returns:
            It.

        Raises:
            MineError: never.
        """
        if a:
            raise MineError("no")  # for many reasons
        return b

    def few(self, a: int, b: int) -> int:
        """Return one."""
        raise MineError("no")

    def _own(self, a: int, b: int, c: int) -> int:
        return a


def nothing(a: int, b: int, c: int) -> None:
    """Do nothing.

    Args:
        a: one.
        b: two.
        c: three.
    """

    def inside() -> None:
        raise MineError("no")

    raise ValueError("not ours")
'''
ARGUMENTS = "\n            a: one.\n            b: two.\n            c: three.\n"


def judge(folder, text, name="module.py"):
    file = folder / name
    file.write_text(text)
    said = incomplete(file, error_names([file]), offered([file])) + strange_words(file)
    return [line.partition(f"{file}:")[2].partition(": ")[2] for line in said]


def test_a_good_file_is_good(tmp_path):
    assert judge(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (f"Args:{ARGUMENTS}", "", "Thing.make has no Args:"),
        ("        Returns:\n            It.\n", "", "Thing.make has no Returns/Yields:"),
        ("Returns:\n            It", "Yields:\n            It", None),
        ("Raises:\n            MineError: never.", "", "Thing.make has no Raises:"),
        (
            "A thing.\n\n    Args:\n        a: one.\n        b: two.\n        c: three.\n",
            "A thing.\n",
            "Thing has no Args:",
        ),
        (
            'c: int) -> None:\n    """Do nothing',
            'c: int) -> str:\n    """Do nothing',
            "nothing has no Returns/Yields:",
        ),
        ('raise ValueError("not ours")', 'raise other.MineError("no")', "nothing has no Raises:"),
        ('"""A module."""', '"""A module for whoever reads it."""', "whoever"),
        ('"""Ours."""', '"""Ours, and so\n    many others."""', "so many"),
        ("# for many reasons", "# for so\n            # many reasons", "so many"),
        ("# for many reasons", "# somebody and manyfold", None),
    ],
)
def test_what_is_missing_is_found(tmp_path, old, new, found):
    assert GOOD.count(old) == 1
    assert judge(tmp_path, GOOD.replace(old, new)) == ([] if found is None else [found])


def test_options_of_a_command_describe_themselves(tmp_path):
    text = '__all__ = ["run"]\n\n\ndef run(a: int, b: int, c: int) -> None:\n    """Run."""\n'
    assert judge(tmp_path, text) == ["run has no Args:"]
    assert judge(tmp_path, text.replace("def", "@app.command()\ndef")) == []
