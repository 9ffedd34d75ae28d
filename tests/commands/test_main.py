# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How the program ends when it has not even begun."""

import signal
import subprocess
import sys

import pytest

from switchgnn.commands.main import main
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
