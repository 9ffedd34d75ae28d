"""Command lines that nobody should write end with one sentence and exit code 2."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table

from switchgnn import __version__
from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.network_file import network_text
from switchgnn.commands.application import COMMANDS
from switchgnn.commands.main import main
from switchgnn.commands.shared.console import StepBars, plain_console, progress_bars
from switchgnn.commands.shared.outputs import LiveOptions
from switchgnn.commands.train.display import Epochs
from tests.network.usual import described_star, with_links
from tests.support.processes import run_program
from tests.support.speed import seconds_here

MANY = "9" * 5000
TRAINING = importlib.util.find_spec("torch_geometric") is not None
HERE = "--workers 2 --target embedded --fabric loopback"
RUN = "run --graph karate --target embedded --fabric loopback"
# The words of a command, and what its sentence says. FIFO is a pipe that nobody writes.
LOOKS_FIRST = (
    *(f"train {HERE} --epochs 2 {word}" for word in ("--plots", "--tensorboard", "--checkpoint")),
    *(f"plan karate --workers 2 {word}" for word in ("--plots", "--out")),
    "figures example --out",
)
LINES = [
    ("plan random:1000000000000:5:1 --workers 2", "1,000,000,000,000 vertices"),
    ("plan random:100000:4000000000:1 --workers 2", "GB of memory"),
    (f"plan karate --workers 2 --memory {MANY}", "--memory"),
    ("plan karate --workers 2 --assignment /dev/zero", "not a regular file"),
    ("plan karate --workers 2 --leaves 2 --spines 99999", "'--spines'"),
    ("plan FIFO.txt --workers 2", "not a regular file"),
    ("run --config FIFO.toml", "FIFO.toml"),
    (f"train {HERE} --hidden {MANY}", "'--hidden'"),
    (f"train {HERE} --hidden 2000000 --layers 8", "--hidden"),
    (f"train {HERE} --lr nan", "--lr"),
    ("switch --grpc unix:s --port 1=udp:127.0.0.1:70000:127.0.0.1:5", "to 65535"),
    ("switch --grpc unix:s --cpu-port 510 --port 510=eth:lo", "--cpu-port"),
    ("switch --grpc unix:s --tls-cert FIFO --tls-key FIFO", "not a regular file"),
    *((f"{line} gone/new", "there is no folder") for line in LOOKS_FIRST),
    ("plan no-such-graph --workers 2 --out .", "is not part of a plan, so it is not overwritten"),
    (f"{RUN} --workers 40", "34"),
    (f"{RUN} --topology leaf-spine --faults l2s0.loss=0.1", "There is no link l2s0 for faults"),
    (f"{RUN} --metrics 65535", "Metrics"),
    (f"{RUN} --mtu jumbo", "MTU"),
    ("run --ports 1-4", "--ports and --job are for a switch that is kept"),
    ("run --on KEPT.toml", "add --ports"),
    ("run --on gone.toml --ports 1", "Cannot read the network gone.toml"),
    ("run --on KEPT.toml --ports 1-4 --job a/b", "'a/b' names no job"),
    ("run --on KEPT.toml --ports 1-x", "write them like 1-4,7"),
    ("allreduce --on KEPT.toml --ports 1-3", "--ports names 3 of the ports, but --workers needs 4"),
    *(
        (f"run --on KEPT.toml --ports 1-4 {words}", f"{words.split()[0]} is for a switch that")
        for words in (
            *("--topology leaf-spine", "--leaves 2", "--bandwidth 5", "--fabric loopback"),
            *(
                *("--target bmv2", "--backend python", "--grpc-port 9559", "--tls ."),
                "--spare-ports 1",
            ),
        )
    ),
    (f"{RUN} --spare-ports 2", "add --keep"),
    (f"{RUN} --spare-ports 2 --keep --leaves 2", "leave out leaves and spines"),
    (f"{RUN} --workers 4 --spare-ports 125 --keep", "at most 128 workers"),
    ("controller install nowhere --address 127.0.0.1:1", "nowhere"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to stand in, with files that no command should wait for or get lost in."""
    for name in ("FIFO", "FIFO.txt", "FIFO.toml"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "KEPT.toml").write_text(network_text(with_links(described_star(5))))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("line", "says"), LINES, ids=[line[:60] for line, _ in LINES])
def test_it_ends_with_one_sentence(line, says, folder, monkeypatch, called):
    if line.startswith("train") and not TRAINING:
        pytest.skip("needs PyTorch Geometric")
    monkeypatch.setenv("COLUMNS", "300")
    before = sorted(path.name for path in folder.iterdir())
    code, _, said = called(*shlex.split(line))
    assert code == 2, said[-2000:]
    # Wrong usage stands in a box of Typer's, every other error in a line of its own.
    [sentence] = re.findall(r"^(?:Error: |│ )(.*?) *│?$", said, re.MULTILINE)
    assert says in sentence
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.whole
@pytest.mark.parametrize("words", ["plan karate --workers 2", "plan nothing 2>&1"])
def test_a_closed_pipe_ends_it_quietly(words, tmp_path):
    """As `head` closes it, before anything is written; 141 is what shells make of SIGPIPE."""
    errors = tmp_path / "errors"
    reads, writes = os.pipe()
    os.close(reads)
    with errors.open("w") as file:
        done = subprocess.run(
            [sys.executable, "-m", "switchgnn", *words.removesuffix("2>&1").split()],
            stdout=writes,
            stderr=writes if words.endswith("2>&1") else file,
            check=False,
            timeout=seconds_here(60),
        )
    os.close(writes)
    said = errors.read_text()
    assert done.returncode == 141, said
    assert "Traceback" not in said
    assert "Broken pipe" not in said and "BrokenPipe" not in said


INTERRUPTED = 130


def test_an_interrupt_while_it_imports_is_not_traced(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["switchgnn.commands.main"], "_start", interrupted)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == INTERRUPTED
    assert capsys.readouterr().err == "Interrupted.\n"


def test_an_interrupt_of_a_command_is_reported(monkeypatch, called):
    """Typer makes an exit code of it."""

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("switchgnn.commands.network.read_network", interrupted)
    assert called("network", "check") == (INTERRUPTED, "", "Interrupted.\n")


def test_an_error_does_nothing_to_the_terminal(monkeypatch, capsys):
    """It may quote a file that somebody else has written."""

    def failed():
        raise SwitchGNNError("field \x1b]0;title\x07 is\nnot \x9b2J known: [red]é[/red]")

    monkeypatch.setattr(sys.modules["switchgnn.commands.main"], "_start", failed)
    with pytest.raises(SystemExit):
        main()
    assert (
        capsys.readouterr().err
        == "Error: field \\x1b]0;title\\x07 is\nnot \\x9b2J known: [red]é[/red]\n"
    )


# What some command needs and takes a while to import.
HEAVY = (
    *("grpc", "google.protobuf", "finsy", "numpy", "scipy", "sklearn", "networkx", "numba"),
    *("pymetis", "mtkahypar", "torch", "torch_geometric", "matplotlib", "scapy", "msgspec"),
    *("starlette", "uvicorn", "prometheus_client"),
)
STARTS = (["-m", "switchgnn"], ["-m", "switchgnn.commands"])


def start(*words, begin=("-m", "switchgnn"), **environment):
    return run_program(
        [sys.executable, *begin, *words],
        env={**os.environ, "COLUMNS": "80", **environment},
        seconds=60,
    )


def imported(*words, **environment):
    """The modules of HEAVY that are there when the program ends, and what it printed."""
    program = (
        "import atexit, sys; from switchgnn.commands import main; "
        f"atexit.register(lambda: print('modules', *[each for each in {HEAVY!r} "
        "if each in sys.modules])); sys.argv = ['switchgnn', *sys.argv[1:]]; main()"
    )
    done = start(*words, begin=("-c", program), **environment)
    assert done.returncode == 0, done.stderr
    printed, _, last = done.stdout.rpartition("modules")
    return last.split(), printed


@pytest.mark.parametrize("begin", STARTS, ids=lambda words: words[1])
def test_the_version_is_told(begin):
    assert start("--version", begin=begin).stdout == f"switchgnn {__version__}\n"
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", __version__)


def test_what_needs_no_command_imports_none():
    modules, printed = imported("--help")
    assert modules == []
    assert "Usage: switchgnn [OPTIONS] COMMAND" in printed


@pytest.mark.whole
def test_without_a_page_nothing_of_it_is_imported():
    options = ("--workers", "2", "--target", "embedded", "--fabric", "loopback")
    modules, _ = imported("run", "--graph", "karate", *options)
    assert {"numpy", "grpc"} <= set(modules)
    assert not {"starlette", "uvicorn"} & set(modules)


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_commands_are_completed_without_importing_them(shell):
    modules, printed = imported(**completing(shell, "switchgnn s"))
    assert modules == []
    for each in COMMANDS:
        # zsh's format quotes names, fish's and zsh's have the line of the list, too.
        there = re.search(rf'(?m)^"?{each.name}\b|"{each.name}"', printed) is not None
        assert there == each.name.startswith("s"), printed


def completing(shell, line):
    """The variables by which a shell asks, as its script has them."""
    words = line.split(" ")
    asking = {"_SWITCHGNN_COMPLETE": f"complete_{shell}"}
    if shell == "bash":
        return asking | {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return asking | {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}


NAME = "a[/x] [red]b[/red] [mininet]"
SOURCES = Path(__file__).parents[2] / "switchgnn" / "commands"


def test_brackets_in_sentences_and_tables_stay(capsys):
    table = Table("[bold]head", title="[title]")
    table.add_row(NAME)
    for each in (NAME, table):
        plain_console().print(each)
    said = capsys.readouterr().out
    assert said.count(NAME) == 2
    assert "[bold]head" in said and "[title]" in said


@pytest.mark.parametrize("step", ["planning: ", ""])
def test_nothing_is_cut_in_a_pipe(step, monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    console = plain_console(stderr=True)
    with progress_bars(console) as progress, Epochs(console, NAME * 9, 1, as_json=False) as epochs:
        StepBars(progress)(step + NAME * 9, 0, 0)
        epochs.step(step + NAME * 9, 0, 0)
    assert capsys.readouterr().err.count(NAME * 9) == 3


def test_all_commands_print_with_it():
    """A console of its own would take brackets for markup."""
    files = sorted(SOURCES.rglob("*.py"))
    own = [file.name for file in files if re.search(r"\bConsole\(", file.read_text())]
    assert own == ["console.py"]


def test_a_port_without_a_page():
    with pytest.raises(SwitchGNNError, match="add --live"):
        LiveOptions(live_port=0).check()
