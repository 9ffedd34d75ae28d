"""What stands beside the code agrees with it: metadata, citation, CI, and what is handed out."""

import os
import re
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

from switchgnn import __version__
from tests.support.installed import build, copy_of_the_checkout
from tests.support.markers import full

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
HOOKS = ROOT / ".pre-commit-config.yaml"
WORKFLOW = ROOT / ".github/workflows/ci.yml"
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]
REQUIREMENT = re.compile(
    r"([A-Za-z0-9_.-]+)(>=|==|<)([A-Za-z0-9.]+)(?:,<[0-9.]+)?(?:; python_version < '[0-9.]+')?"
)
# Tests run with one version, `torch==...`; that the lowest works was tried by hand.
ONE_VERSION = "torch"


def requirements():
    """Every requirement as (name, relation, version), but what stands for an extra of ours."""
    extras = PROJECT["optional-dependencies"].values()
    for requirement in [*PROJECT["dependencies"], *(each for extra in extras for each in extra)]:
        if not requirement.startswith("switchgnn["):
            found = REQUIREMENT.fullmatch(requirement)
            assert found, f"{requirement} has no bound, or more than one"
            yield found.groups()


def test_the_lowest_versions_are_those_that_are_allowed():
    text = (ROOT / "requirements-lowest.txt").read_text()
    assert {line for line in text.splitlines() if line and not line.startswith("#")} == {
        f"{name}=={version}"
        for name, relation, version in requirements()
        if relation != "<" and name != ONE_VERSION
    }


@pytest.mark.parametrize("path", [HOOKS, WORKFLOW], ids=lambda path: path.name)
def test_make_targets_of_hooks_and_workflow_exist(path):
    found = set(re.findall(r"^[^#\n]*\bmake ([a-z-]+)", path.read_text(), re.MULTILINE))
    assert "check" in found
    for target in found:
        assert re.search(rf"^{re.escape(target)}:", MAKEFILE, re.MULTILINE), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_documents_install_from_the_checkout(page):
    """The package is not published, so its name alone installs nothing."""
    for words in re.findall(r"pip install ([^`\n]+)", page.read_text()):
        assert not re.search(r"\bswitchgnn\b", words), words
        for extras in re.findall(r"-e '\.\[([a-z,]+)\]'", words):
            assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"]), words


LINKED = ("controller", "host", "p4src", "topologies")


def files_of(folder):
    """All files of a folder by their path in it, through links to folders too."""
    return {
        str((Path(home) / name).relative_to(folder))
        for home, _, names in os.walk(folder, followlinks=True)
        for name in names
    }


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return copy_of_the_checkout(tmp_path_factory.mktemp("tree") / "tree")


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


@full
def test_the_source_distribution_is_the_whole_tree(unpacked):
    home, content = unpacked
    held = {path for path in files_of(home) if not path.startswith("switchgnn.egg-info/")}
    assert content - held == set()
    assert held - content == {"PKG-INFO", "setup.cfg"}
    for folder in LINKED:
        for path in files_of(home / folder):
            copies = [home / folder / path, home / "switchgnn" / folder / path]
            assert copies[0].read_bytes() == copies[1].read_bytes()


@full
def test_the_wheel_holds_the_package_once_and_says_what_it_is(tree, wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        told = message_from_string(archive.read(metadata).decode())
    inside = [name for name in names if ".dist-info/" not in name]
    assert len(inside) == len(set(inside))
    assert set(inside) == {f"switchgnn/{path}" for path in files_of(tree / "switchgnn")}
    assert (told["Version"], told["License-Expression"]) == (__version__, "Apache-2.0")
    assert any(name.endswith("/licenses/LICENSE") for name in names)
