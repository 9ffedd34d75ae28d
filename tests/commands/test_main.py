# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How the program ends when it has not even begun."""

import signal
import subprocess
import sys

import pytest

from switchgnn.commands.main import main
from switchgnn.errors import SwitchGNNError
from tests.support.speed import seconds_here

INTERRUPTED = 130


def test_an_interrupt_while_it_imports_is_not_traced(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["switchgnn.commands.main"], "_application", interrupted)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == INTERRUPTED
    assert capsys.readouterr().err == ""


def test_an_error_does_nothing_to_the_terminal(monkeypatch, capsys):
    """It may quote a file that somebody else has written."""

    def failed():
        raise SwitchGNNError("field \x1b]0;title\x07 is\nnot \x9b2J known: [red]é[/red]")

    monkeypatch.setattr(sys.modules["switchgnn.commands.main"], "_application", failed)
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().err == "Error: field ?]0;title? is\nnot ?2J known: [red]é[/red]\n"


def test_ctrl_c_at_once(tmp_path):
    """The signal comes as soon as the import of the commands has begun."""
    (tmp_path / "typer.py").write_text(
        f"import os\nos.kill(os.getpid(), {int(signal.SIGINT)})\nfor _ in range(10**9): pass\n"
    )
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.argv = ['switchgnn', 'run']"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nfrom switchgnn.commands import main\nmain()"],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds_here(60),
    )
    assert (done.returncode, done.stderr) == (INTERRUPTED, "")
