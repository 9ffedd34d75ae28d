"""Every command and program in the docs is executed, every link leads somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from switchgnn.host.wire.header import LAST_FRAGMENT
from switchgnn.planner.base.lanes import LANES, ROWS, sum_frame_bytes
from tests.support.documents import ENVIRONMENT, run_command
from tests.support.levels import simulator_missing, tshark_missing
from tests.support.markers import full

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
TEST = re.compile(r"`(tests/[\w./-]+)(?:::(\w+))?`")
MAKE_TARGET = re.compile(r"`make ([a-z0-9-]+)")


def blocks(page, language):
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind == language]


README = ROOT / "README.md"
ACTIVATE = ". .venv/bin/activate"
# Sets of tests would run this test again, or the tests beside it; ENVIRONMENT is an activated one.
NOT_RUN = ("make check", "make test", ACTIVATE)


def lines(page):
    """The commands of a page, in order."""
    return [line for text in blocks(page, "sh") for line in text.splitlines() if line.strip()]


# The gate carries out `make run` itself: see .ci/run.
COMMANDS = [
    pytest.param(line, marks=full) if line == "make run" else line
    for page in PAGES
    for line in lines(page)
    if not line.startswith(NOT_RUN)
]

NO_SIMULATIONS = simulator_missing()
NO_TSHARK = tshark_missing()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the commands run, one after another, as a reader would."""
    return tmp_path_factory.mktemp("reader")


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command, folder):
    if command.startswith(("switchgnn simulate", "switchgnn figures")) and NO_SIMULATIONS:
        pytest.skip(NO_SIMULATIONS)
    if command.startswith("tshark "):
        if NO_TSHARK:
            pytest.skip(NO_TSHARK)
        # As in a checkout.
        (folder / "deploy").exists() or (folder / "deploy").symlink_to(ROOT / "deploy")
    if command.startswith("make "):
        # As many epochs as the default has would take most of the time of this file.
        command = f"{command} --directory {ROOT} EPOCHS=2"
    # What belongs to the tests is there in a checkout only.
    output = run_command(command, ROOT if command.startswith("python -m tests.") else folder)
    carried = re.search(r"host [\d.,]+ [kMG]B, ([\d.]+) times|host takes ([\d.]+) times", output)
    if carried and any(command.startswith(line) for line in lines(README)):
        assert float(carried[1] or carried[2]) > 1, "the README is to show where the switch pays"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python(page, tmp_path):
    programs = blocks(page, "python")
    if not programs:
        pytest.skip("no Python on this page")
    plan = ["switchgnn", "plan", "digits", "--workers", "4", "--slots", "256", "--out"]
    subprocess.run(
        [*plan, "digits-plan"], cwd=tmp_path, env=ENVIRONMENT, check=True, capture_output=True
    )
    subprocess.run(
        [sys.executable, "-c", "\n".join(programs)], cwd=tmp_path, env=ENVIRONMENT, check=True
    )


# The number of a process, a digest that covers the program, and who was the last to be done.
VARYING = re.compile(r"dst \d{6,}|plan [0-9a-f]{8}|src \d (?=dst 2 count 0 level 0 \[ack\])")
PACKET = re.compile(r"^(?:w\d|switch) > .*", re.MULTILINE)


def test_the_walkthrough_quotes_packets_as_they_are_captured(tmp_path):
    page = ROOT / "docs/walkthrough.md"
    run, capture = lines(page)
    run_command(run, tmp_path)
    captured = VARYING.sub("", run_command(capture, tmp_path))
    quoted = PACKET.findall(VARYING.sub("", page.read_text()))
    assert len(quoted) == 9
    assert [line for line in quoted if line not in captured] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_make_targets_lead_somewhere(page):
    text, makefile = page.read_text(), (ROOT / "Makefile").read_text()
    for target in LINK.findall(text):
        assert (page.parent / target).exists(), target
    for target in MAKE_TARGET.findall(text):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_documents_agree_on_what_several_state():
    pages = ("README", "docs/architecture", "docs/evidence/benchmarks", "docs/limitations")
    *native, measured, limits = ((ROOT / f"{page}.md").read_text() for page in pages)
    (rates,) = re.findall(r"Python back end, .* \((\d+)[^\d]([\d,]+)\)", measured)
    assert all(f"{' to '.join(rates)} times" in text for text in native)
    longest = max(sum_frame_bytes(LANES[-1] // rows, rows) for rows in ROWS)
    assert f"of at most {longest:,} bytes at the switch" in limits
    assert f"at most {LAST_FRAGMENT + 1} fragments" in limits


GOALS = ("run", "exchange", "up")
LEAF_SPINE = "TOPOLOGY=leaf-spine LEAVES=3 SPINES=2"


@pytest.mark.parametrize(
    ("goal", "words", "shown"),
    [
        *((goal, LEAF_SPINE, "--topology leaf-spine --leaves 3 --spines 2") for goal in GOALS),
        # The program refuses a wrong word; it must not run a star instead.
        *((goal, "TOPOLOGY=ring", "--topology ring") for goal in GOALS),
        ("up", "SPARE_PORTS=8", "--spare-ports 8 "),
        ("run", "", "--target reference "),
        ("run", "TARGET=embedded", "--target embedded "),
        *((goal, "", "--target auto ") for goal in ("exchange", "up", "soak")),
    ],
)
def test_make_passes_on_what_it_is_asked_for(goal, words, shown):
    command = ["make", "-n", goal, *words.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown in done.stdout


def is_there(name, test):
    """Whether there is such a file or folder, and, if a test is named, one of that name in it."""
    path = ROOT / name
    if not test:
        return path.exists()
    beginning = re.compile(rf"^(def|class) {test}\b", re.MULTILINE)
    return path.is_file() and beginning.search(path.read_text()) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_tests_exist(page):
    found = TEST.findall(page.read_text())
    assert [f"{name}::{test}" for name, test in found if not is_there(name, test)] == []


def test_every_attack_names_a_test():
    """The table of attacks has no row without one, but for what has no field to forge."""
    rows = [
        line.split(" | ")
        for line in (ROOT / "docs/security.md").read_text().partition("## In a")[0].splitlines()
        if line.startswith("| ")
    ][1:]
    assert len(rows) > 50
    for attack, _, tests, result in rows:
        assert "::test_" in tests or "/ptf/cases/" in tests or tests.startswith("none; "), attack
        assert result.removesuffix("|").strip(), attack
