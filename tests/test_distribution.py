# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What is handed out is complete: the source distribution, and the wheel made of it."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

from switchgnn import __version__
from tests.support.speed import seconds_here

ROOT = Path(__file__).parent.parent
LINKED = ("controller", "host", "p4src", "topologies")
# What is made and not part of the tree; a checkout has more of it than a clone.
MADE = shutil.ignore_patterns(
    *(".git", ".venv*", ".*_cache", ".hypothesis", ".run", "__pycache__", "*.egg-info"),
    *("build", "dist", "results"),
)
HOOKS = "from setuptools import build_meta; import sys; build_meta.build_{}(sys.argv[1])"

pytestmark = pytest.mark.full
pytest.importorskip("setuptools", "77.0.3", reason="setuptools is too old, or missing")


def build(what, tree, out):
    out.mkdir()
    subprocess.run([sys.executable, "-c", HOOKS.format(what), str(out)], cwd=tree, check=True)
    (made,) = out.iterdir()
    return made


def files_of(folder):
    """All files of a folder by their path in it, through links to folders too."""
    return {
        str((Path(home) / name).relative_to(folder))
        for home, _, names in os.walk(folder, followlinks=True)
        for name in names
    }


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the checkout, where a build may write."""
    return shutil.copytree(
        ROOT, tmp_path_factory.mktemp("tree") / "tree", symlinks=True, ignore=MADE
    )


@pytest.fixture(scope="module")
def unpacked(tree, tmp_path_factory):
    """The source distribution as a user unpacks it, and what the tree held."""
    content = files_of(tree)
    folder = tmp_path_factory.mktemp("source")
    with tarfile.open(build("sdist", tree, folder / "dist")) as archive:
        archive.extractall(folder, filter="data")
    (home,) = folder.glob("switchgnn-*")
    return home, content


@pytest.fixture(scope="module")
def wheel(unpacked, tmp_path_factory):
    return build("wheel", unpacked[0], tmp_path_factory.mktemp("wheel") / "dist")


def test_the_source_distribution_is_the_whole_tree(unpacked):
    home, content = unpacked
    made = {"PKG-INFO", "setup.cfg"}
    held = {path for path in files_of(home) if not path.startswith("switchgnn.egg-info/")}
    assert content - held == set()
    assert held - content == made
    for folder in LINKED:
        for path in files_of(home / folder):
            copies = [home / folder / path, home / "switchgnn" / folder / path]
            assert copies[0].read_bytes() == copies[1].read_bytes()


def test_the_wheel_holds_the_package_once(tree, wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert len(names) == len(set(names))
    assert set(names) == {f"switchgnn/{path}" for path in files_of(tree / "switchgnn")}


def test_the_wheel_says_what_it_is(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        told = message_from_string(archive.read(name).decode())
        licences = [name for name in archive.namelist() if ".dist-info/licenses/" in name]
    assert told["Version"] == __version__
    assert told["License-Expression"] == "Apache-2.0"
    assert told["Author"] == "The SwitchGNN authors"
    assert [Path(path).name for path in licences] == ["LICENSE"]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The wheel where Python finds it before the checkout; a pure wheel is only unpacked."""
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)  # noqa: S202  we have just built it
    return site


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "doctor",
        "run --graph karate --workers 3 --rounds 2 --target embedded --fabric loopback",
        "run --graph karate --workers 3 --rounds 2 --target embedded --backend native",
        "run --graph karate --workers 3 --rounds 2 --target embedded --backend python",
    ],
)
def test_it_runs_outside_the_checkout(installed, command, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    run = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    where = [sys.executable, "-c", "import switchgnn; print(switchgnn.__file__)"]
    found = subprocess.run(where, check=True, **run).stdout
    assert found.strip() == str(installed / "switchgnn/__init__.py")
    program = [sys.executable, "-m", "switchgnn.commands", *command.split()]
    told = subprocess.run(program, check=False, timeout=seconds_here(100), **run)
    assert told.returncode == 0, told.stdout + told.stderr
