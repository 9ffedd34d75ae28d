"""What the slow groups of tests find, `make test` notices: mistakes are planted in copies."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

import pytest

from tests.planted.mistakes import MISTAKES
from tests.planted.planting import ROOT, changed_text

NODES = sorted({node for mistake in MISTAKES for node in mistake.noticed_by})
# Tests that plant mistakes themselves: in P4 and its tables, in plans, in models.
ELSEWHERE = (
    "tests/promela/test_model.py",
    "tests/ptf/test_ptf.py",
    "tests/simulator/test_planted.py",
    "tests/virtual/planted/test_planted.py",
)
NOTHING_COLLECTED = 5
every_mistake = pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)


def plant(mistake, folder):
    (folder / mistake.file).write_text(changed_text(mistake.file, mistake.old, mistake.new))


@every_mistake
def test_it_still_applies(mistake):
    changed = changed_text(mistake.file, mistake.old, mistake.new)
    assert mistake.old != mistake.new
    if mistake.file.endswith(".py"):
        compile(changed, mistake.file, "exec")


def collected(*options):
    """Return what pytest collects, one node id a line, with its summary behind."""
    command = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
    told = subprocess.run(
        [*command, *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert told.returncode in (0, NOTHING_COLLECTED), told.stdout[-2000:]
    return told.stdout.splitlines()


@pytest.mark.full
def test_what_notices_them_is_in_make_test():
    kept = set(collected("--level", "test", *{node.partition("::")[0] for node in NODES}))
    # A name without its parameters is that of all variants, and a file that of its tests.
    kept |= {node.partition(mark)[0] for node in kept for mark in ("[", "::")}
    assert [node for node in NODES if node not in kept] == []


@pytest.mark.whole
def test_mistakes_that_are_planted_elsewhere_are_in_make_test():
    """Some of them: the oracles that they show to fail are all in there."""
    chosen = ("-k", "planted or mistake", *ELSEWHERE)
    kept = {line.partition("::")[0] for line in collected("--level", "test", *chosen)}
    assert set(ELSEWHERE) <= kept


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_without_a_mistake_they_pass(tmp_path):
    verdict = run_tests(copy_of_the_tree(tmp_path / "copy"), NODES)
    assert verdict.code == 0, verdict.output[-4000:]


@pytest.mark.full
@pytest.mark.timeout(240)
@every_mistake
def test_it_is_noticed(mistake, tmp_path):
    folder = copy_of_the_tree(tmp_path / "copy")
    plant(mistake, folder)
    for node in mistake.noticed_by:
        verdict = run_tests(folder, [node])
        if verdict.all_skipped:
            pytest.skip(f"{node} needs more than this machine has")
        assert verdict.failed, verdict.output[-4000:]


_FAILED = re.compile(r"^FAILED |ERROR at teardown of ", re.MULTILINE)
_BROKEN = re.compile(r"ERROR at setup of |ERROR collecting ")
_OF_PYTEST = "PYTEST_DEBUG_TEMPROOT"
_NOTHING_RAN = 5
_PYTEST = ("-m", "pytest", "--level", "test", "-x", "-p", "no:cacheprovider", "--timeout", "100")


@dataclass(frozen=True)
class Verdict:
    """The exit code of a run of pytest, and what it printed."""

    code: int
    output: str

    @property
    def failed(self) -> bool:
        """Whether a test failed; a test that could not begin is no proof of anything."""
        return self.code == 1 and bool(_FAILED.search(self.output)) and not self.broken

    @property
    def broken(self) -> bool:
        return bool(_BROKEN.search(self.output))

    @property
    def all_skipped(self) -> bool:
        return self.code == _NOTHING_RAN or (self.code == 0 and " passed" not in self.output)


def copy_of_the_tree(folder):
    """Copy what git knows of, with links as links."""
    named = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, named.stdout.decode().split("\0")):
        if os.path.lexists(ROOT / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def run_tests(folder, nodes, *options):
    """Run pytest in a copy, which ends what its tests leave behind."""
    inherited = {
        name: it
        for name, it in os.environ.items()
        if not name.startswith("PYTEST_") or name == _OF_PYTEST
    }
    done = subprocess.run(
        [sys.executable, *_PYTEST, *options, *nodes],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Verdict(done.returncode, done.stdout)
