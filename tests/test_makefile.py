"""`make` makes its environments, and finishes those of which a step has failed before."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.speed import seconds_here

ROOT = Path(__file__).parent.parent
# `python -m venv` as Debian's: the interpreter is there before ensurepip, which comes in a package
# of its own, makes pip. `fail` names the step that fails, and how.
PYTHON = """\
#!/bin/bash
here=$(dirname "$(readlink -f "$0")")
read -r step how < "$here/fail"
fails() {
    echo "$1" >> "$here/steps"
    [ "$1" != "$step" ] || { [ "$how" != interrupted ] || kill -INT 0; exit 1; }
}
[ "$1" = -m ] || exit 2
if [ "$2" = venv ]; then
    mkdir -p "$3/bin"
    ln -sf "$here/python" "$3/bin/python"
    fails venv
    touch "$3/bin/pip"
else
    [ -e "$(dirname "$0")/pip" ] || { echo "No module named pip" >&2; exit 1; }
    fails pip
fi
"""


@pytest.fixture
def folder(tmp_path):
    for name in ("Makefile", "pyproject.toml", "requirements-lowest.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/python").write_text(PYTHON)
    (tmp_path / "tools/python").chmod(0o755)
    return tmp_path


def make(folder, target, fail=""):
    """Run make with a step that fails; return its exit code and the steps it took."""
    steps = folder / "tools/steps"
    steps.write_text("")
    (folder / "tools/fail").write_text(f"{fail}\n")
    done = subprocess.run(
        ["make", "--silent", f"PYTHON={folder / 'tools/python'}", target],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Ctrl-C reaches make and all that it has started.
        start_new_session=True,
        timeout=seconds_here(30),
        check=False,
    )
    return done.returncode, steps.read_text().split()


@pytest.mark.parametrize("fail", ["venv", "venv interrupted", "pip", "pip interrupted"])
@pytest.mark.parametrize(
    "target",
    [
        *(f".venv/{name}" for name in ("base", "run", "test", "figures", "docs")),
        ".venv-shell/ready",
        ".venv-lowest/ready",
    ],
)
def test_an_environment_counts_when_its_last_step_has_succeeded(folder, target, fail):
    code, steps = make(folder, target, fail)
    assert code != 0
    assert steps[-1] == fail.split()[0]
    assert not (folder / target).exists()
    code, steps = make(folder, target)
    assert (code, steps[-1]) == (0, "pip")
    assert (folder / target).exists()
    assert make(folder, target) == (0, [])
