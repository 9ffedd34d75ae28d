# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Command lines that nobody should write end with one sentence and exit code 2."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys

import pytest

from switchgnn.commands.main import main
from tests.support.speed import seconds_here

SIXTY, MANY = "9" * 60, "9" * 5000
LONG = "a" * 5000
TRAINING = importlib.util.find_spec("torch_geometric") is not None
HERE = "--workers 2 --target embedded --fabric loopback"
# The words of a command, and what its sentence says. FIFO is a pipe that nobody writes.
LINES = [
    ("plan random:1000000000000:5:1 --workers 2", "1,000,000,000,000 vertices"),
    ("plan random:99999999999999999999:5:1 --workers 2", "99,999,999,999,999,999,999 vertices"),
    ("plan random:2000000000:5:1 --workers 2", "GB of memory"),
    ("plan random:100000:4000000000:1 --workers 2", "GB of memory"),
    (f"plan random:{MANY}:5:1 --workers 2", "write random:VERTICES:EDGES:SEED"),
    (f"plan reddit-like:0.1:{MANY} --workers 2", "write reddit-like:SCALE:SEED"),
    (f"plan karate --workers 2 --memory {SIXTY}", "--memory"),
    (f"plan karate --workers 2 --memory {MANY}", "--memory"),
    (f"plan karate --workers 2 --table-memory {SIXTY}GB", "--table-memory"),
    (f"plan karate --workers 2 --slots {SIXTY}", "'--slots'"),
    (f"plan karate --workers 2 --features {SIXTY}", "'--features'"),
    ("plan karate --workers 2 --assignment /dev/zero", "not a regular file"),
    ("plan karate --workers 2 --assignment FIFO", "not a regular file"),
    ("plan karate --workers 2 --leaves 2 --spines 99999", "'--spines'"),
    ("plan FIFO.txt --workers 2", "not a regular file"),
    ("plan FIFO.npz --workers 2", "not a regular file"),
    (f"plan karate --workers 2 --out {LONG}", "too long"),
    (f"plan karate --workers 2 --plots {LONG}", "too long"),
    (f"plan {LONG}.txt --workers 2", "too long"),
    ("run --config FIFO.toml", "FIFO.toml"),
    (f"run --graph karate {HERE} --features {SIXTY}", "'--features'"),
    (f"run --graph karate {HERE} --rounds {SIXTY}", "'--rounds'"),
    (f"run --graph karate {HERE} --pcap {LONG}", "too long"),
    (f"run --graph karate {HERE} --log-dir {LONG}", "too long"),
    (f"run --graph karate {HERE} --topology leaf-spine --spines 99999", "'--spines'"),
    (f"train {HERE} --hidden {SIXTY}", "'--hidden'"),
    (f"train {HERE} --hidden {MANY}", "'--hidden'"),
    (f"train {HERE} --hidden 100000000", "'--hidden'"),
    (f"train {HERE} --hidden 2000000 --layers 8", "--hidden"),
    (f"train {HERE} --layers 5000", "'--layers'"),
    (f"train {HERE} --lr 1e300", "'--lr'"),
    (f"train {HERE} --lr nan", "--lr"),
    (f"train {HERE} --weight-decay 1e300", "'--weight-decay'"),
    (f"train {HERE} --checkpoint {LONG}", "too long"),
    (f"simulate --graph karate --workers 2 --features {SIXTY}", "'--features'"),
    ("switch --grpc unix:s --port 1=udp:127.0.0.1:70000:127.0.0.1:5", "to 65535"),
    ("switch --grpc unix:s --port 1=udp:127.0.0.1:5:127.0.0.1:-5", "to 65535"),
    (f"switch --grpc unix:s --port 1=udp:{LONG}:5:127.0.0.1:5", "UDP address"),
    ("switch --grpc unix:s --cpu-port 510 --port 510=eth:lo", "--cpu-port"),
    ("switch --grpc unix:s --tls-cert FIFO --tls-key FIFO", "not a regular file"),
    ("soak --simulated --scenario DEEP.json", "nested"),
    ("soak --simulated --scenario DEEP.toml", "nested"),
    ("soak --simulated --scenario '" + '{"graph":' + "[" * 30000 + "'", "nested"),
    ("soak --simulated --scenario FIFO", "not a regular file"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to stand in, with files that no command should wait for or get lost in."""
    for name in ("FIFO", "FIFO.txt", "FIFO.npz", "FIFO.toml"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "DEEP.json").write_text("[" * 100_000)
    (tmp_path / "DEEP.toml").write_text("a = " + "[" * 100_000)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("line", "says"), LINES, ids=[line[:60] for line, _ in LINES])
def test_it_ends_with_one_sentence(line, says, folder, monkeypatch, capsys):
    if line.startswith("train") and not TRAINING:
        pytest.skip("needs PyTorch Geometric")
    monkeypatch.setattr(sys, "argv", ["switchgnn", *shlex.split(line)])
    monkeypatch.setenv("COLUMNS", "300")
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr().err
    assert end.value.code == 2, said[-2000:]
    assert "Traceback" not in said
    # Wrong usage stands in a box of Typer's, every other error in a line of its own.
    [sentence] = re.findall(r"^(?:Error: |│ )(.*?) *│?$", said, re.MULTILINE)
    assert says in sentence
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.whole
@pytest.mark.parametrize("words", ["plan karate --workers 2", "--help", "plan nothing 2>&1"])
def test_a_closed_pipe_ends_it_quietly(words, tmp_path):
    """As `head` closes it, before anything is written; 141 is what shells make of SIGPIPE."""
    errors = tmp_path / "errors"
    reads, writes = os.pipe()
    os.close(reads)
    with errors.open("w") as file:
        both = words.endswith("2>&1")
        done = subprocess.run(
            [sys.executable, "-m", "switchgnn", *words.removesuffix("2>&1").split()],
            stdout=writes,
            stderr=writes if both else file,
            check=False,
            timeout=seconds_here(60),
        )
    os.close(writes)
    said = errors.read_text()
    assert done.returncode == 141, said
    assert "Traceback" not in said
    assert "Broken pipe" not in said and "BrokenPipe" not in said
