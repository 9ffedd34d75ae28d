# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How the program ends when it has not even begun."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from switchgnn.base.errors import SwitchGNNError
from switchgnn.commands.main import main
from tests.support.speed import seconds_here

INTERRUPTED = 130
ROOT = Path(__file__).parents[2]


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


def ends_with(folder, module, content, *words):
    """The exit code and error of a program for which a module is another one."""
    (folder / f"{module}.py").write_text(content)
    known = os.pathsep.join((str(folder), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-m", "switchgnn", *words],
        env={**os.environ, "PYTHONPATH": known},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds_here(60),
    )
    return done.returncode, done.stderr


WAIT = "for _ in range(10**9): pass"


def test_ctrl_c_at_once(tmp_path):
    """The signal comes as soon as the import of the commands has begun."""
    content = f"import os\nos.kill(os.getpid(), {int(signal.SIGINT)})\n{WAIT}\n"
    assert ends_with(tmp_path, "typer", content, "run") == (INTERRUPTED, "")


@pytest.mark.parametrize("command", ["doctor", "plan"])
@pytest.mark.parametrize("string", [False, True], ids=["plain", "from-a-string"])
def test_ctrl_c_while_a_command_imports(tmp_path, command, string):
    """Dataclasses are made from strings: Python then would end itself by the signal."""
    content = f"import os\nos.kill(os.getpid(), {int(signal.SIGINT)})\n{WAIT}\n"
    given = f"exec({content!r})\n" if string else content
    assert ends_with(tmp_path, "numpy", given, command) == (INTERRUPTED, "")


def test_what_is_there_before_an_interrupt_is_caught_is_little():
    """Ctrl-C is traced meanwhile."""
    program = (
        "import sys; before = set(sys.modules); import switchgnn.commands.main; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    ours = {"switchgnn", "switchgnn.base", "switchgnn.base.errors"}
    ours |= {"switchgnn.commands", "switchgnn.commands.main"}
    assert set(done.stdout.split()) == ours
