"""The container file copies what an installation needs, and starts what is installed."""

import re
import shutil
import zipfile

import pytest

from tests.deploy.test_units import DEPLOY
from tests.support.installed import MADE, build

ROOT = DEPLOY.parent
FILE = DEPLOY / "Containerfile"
LINES = re.sub(r"\\\n", " ", FILE.read_text()).splitlines()
STEPS = [line.split(maxsplit=1) for line in LINES if line and not line.startswith("#")]


def given(kind):
    return [words for name, words in STEPS if name == kind]


def test_what_is_copied_is_there():
    for words in given("COPY"):
        for source in words.split()[:-1]:
            assert (ROOT / source).exists(), source


@pytest.mark.full
def test_what_is_copied_is_enough_for_an_installation(tmp_path):
    tree = tmp_path / "src"
    tree.mkdir()
    for words in given("COPY"):
        *sources, folder = words.split()
        for source in sources:
            target = tree / source if folder == "./" else tree / folder
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, target, symlinks=True, ignore=MADE)
            else:
                shutil.copy(ROOT / source, target)
    names = set(zipfile.ZipFile(build("wheel", tree, tmp_path / "out")).namelist())
    assert "switchgnn/commands/switch.py" in names
    assert "switchgnn/p4src/compiled/switchgnn.json" in names
    assert any(name.startswith("switchgnn/softswitch/native/runtime/") for name in names)
