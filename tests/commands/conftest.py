"""Whole command lines, run in the process of the tests."""

import sys

import pytest

from switchgnn.commands.main import main


@pytest.fixture
def called(monkeypatch, capsys):
    """Run a command line; return its exit code, its output and its errors."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["switchgnn", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return end.value.code, said.out, said.err

    return call
