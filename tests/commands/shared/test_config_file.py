# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`--config FILE` of `run` and `train`: what it takes, what counts more, and what it refuses."""

import json
import os
import sys
from pathlib import Path

import pytest
import typer

from switchgnn.commands.errors import ConfigError
from switchgnn.commands.main import main
from switchgnn.commands.run.command import app as run_app
from switchgnn.commands.train.command import app as train_app
from tests.support.commands import switchgnn

COMMANDS = {"run": typer.main.get_command(run_app), "train": typer.main.get_command(train_app)}


@pytest.fixture
def config(tmp_path):
    def write(text):
        file = tmp_path / "options.toml"
        file.write_text(text)
        return file

    return write


def taken(file, *words, command="run"):
    """The values that the function of a command is called with; choices as their words."""
    context = COMMANDS[command].make_context(command, ["--config", str(file), *words])
    return {name: getattr(value, "value", value) for name, value in context.params.items()}


def test_options_come_from_the_file(config):
    file = config(
        'workers = 3\ngraph = "karate"\npatience = 5\nfabric = "loopback"\nkeep = true\n'
        'tls = "certificates"\nno-congestion-control = true\njson = true\n'
    )
    values = taken(file)
    assert values["workers"] == 3
    assert values["graph"] == "karate"
    assert values["patience"] == 5.0
    assert values["fabric"] == "loopback"
    assert values["keep"] is True
    # In older versions of Typer a path is made when the function is called.
    assert Path(values["tls"]) == Path("certificates")
    assert values["no_congestion_control"] is True
    assert values["as_json"] is True
    assert values["rounds"] == 3, "what it does not say is as usual"


def test_the_command_line_counts_more(config):
    file = config('workers = 3\nkeep = true\nbackend = "python"\ntopology = "leaf-spine"\n')
    values = taken(file, "--workers", "5", "--no-keep", "--backend", "auto", "--topology", "star")
    assert values["workers"] == 5
    assert values["keep"] is False
    assert values["backend"] == "auto"
    assert values["topology"] == "star"


def test_options_may_stand_before_the_file(config):
    file = config("workers = 3\nrounds = 2\n")
    context = COMMANDS["run"].make_context("run", ["--workers", "5", "--config", str(file)])
    assert context.params["workers"] == 5
    assert context.params["rounds"] == 2


def test_what_may_be_repeated_is_a_list(config):
    file = config('transport = ["switch", "local"]\nhidden = 8\nnode-features = "x.npy"\n')
    values = taken(file, command="train")
    assert list(values["transport"]) == ["switch", "local"]
    assert values["hidden"] == 8
    assert Path(values["node_features"]) == Path("x.npy")
    values = taken(file, "--transport", "host", command="train")
    assert list(values["transport"]) == ["host"]


def refused(file, command="run"):
    with pytest.raises(ConfigError) as caught:
        taken(file, command=command)
    sentence = str(caught.value)
    assert str(file) in sentence
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("worker = 3", "'worker' is no option of this command; did you mean workers?"),
        ("ecn_threshold = 3", "did you mean ecn-threshold?"),
        ("zzz = 3", "--help lists"),
        ('config = "other.toml"', "'config' is no option"),
        ("help = true", "'help' is no option"),
        ("as-json = true", "'as-json' is no option"),
        ('workers = "3"', "workers = '3', which must be a whole number"),
        ("workers = 3.0", "workers = 3.0, which must be a whole number"),
        ("workers = true", "workers = True, which must be a whole number"),
        ("workers = [3]", "workers = [3], which must be a whole number"),
        ("workers = 0", "workers = 0: "),
        ("workers = 129", "workers = 129: "),
        ("patience = false", "patience = False, which must be a number"),
        ("patience = 0.0", "patience = 0.0: "),
        ("keep = 1", "keep = 1, which must be true or false"),
        ("graph = 3", "graph = 3, which must be a string"),
        ("graph = 2026-01-01", "which must be a string"),
        ("tls = 3", "tls = 3, which must be a string"),
        ('fabric = "token-ring"', "'token-ring'"),
        ("[run]\nworkers = 3", "'run' is no option"),
        ("workers 3", "is not TOML"),
        ("workers = 3\nworkers = 4", "is not TOML"),
        ("graph = " + "[" * 20_000, "is not TOML"),
        ("seed = " + "9" * 20_000, "is not TOML"),
        ('workers = "' + "x" * 60_000 + '"', "workers = 'xxx"),
        ("x" * 60_000 + " = 3", "is no option"),
    ],
)
def test_what_it_refuses(config, line, words):
    sentence = refused(config(line))
    assert words in sentence
    assert len(sentence) < 500


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('transport = "switch"', "transport may be repeated: write a list"),
        ("transport = [3]", "transport = 3, which must be a string"),
        ('transport = ["pigeons"]', "pigeons"),
        ("lr = -1", "lr = -1"),
        ("paper = 0", "paper = 0, which must be true or false"),
    ],
)
def test_what_train_refuses(config, line, words):
    assert words in refused(config(line), command="train")


def test_a_file_that_is_not_there(tmp_path):
    assert "No such file" in refused(tmp_path / "none.toml")
    assert "not a regular file" in refused(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refused(tmp_path / "pipe")


def test_no_text(tmp_path):
    (tmp_path / "binary").write_bytes(b"workers = \xff\xfe")
    assert "is not TOML" in refused(tmp_path / "binary")


def test_a_long_file_is_not_read_to_its_end(tmp_path):
    file = tmp_path / "long.toml"
    with file.open("wb") as opened:
        opened.truncate(2**40)
    assert "larger than 64 kB" in refused(file)


@pytest.mark.whole
def test_a_run_takes_its_options_from_a_file(config):
    file = config(
        'graph = "karate"\nworkers = 2\nrounds = 1\nfabric = "loopback"\ntarget = "embedded"\n'
    )
    done = switchgnn("run", "--config", file, "--workers", 3, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["graph"], report["workers"], report["rounds"]) == ("karate", 3, 1)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_file_is_one_sentence(config, command, monkeypatch, capsys):
    file = config("worker = 3\n")
    monkeypatch.setattr(sys, "argv", ["switchgnn", command, "--config", str(file)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        f"Error: --config {file}: 'worker' is no option of this command; did you mean workers?\n"
    )
