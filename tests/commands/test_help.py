# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Every help fits a terminal of 80 columns, and has an example that works."""

import re
import shlex
from dataclasses import fields

import pytest
import typer
from typer.testing import CliRunner

from switchgnn.commands.application import COMMANDS, app
from switchgnn.commands.train.options import COMMON
from switchgnn.host.registry import AUTO, DEFAULT, TRANSPORTS
from switchgnn.host.wire.faults import DIRECTIONS, FaultRates, Faults
from switchgnn.planner.chosen import KNOWN
from switchgnn.planner.presets import PRESETS
from tests.support.commands import switchgnn

WIDTH = 80
EXAMPLE = "Example: "
# Those that need nothing else and take a second or two.
RUN = ("run", "plan", "shard", "soak", "doctor")


def all_commands():
    """Every command with its words; each is imported."""
    found = {(): typer.main.get_command(app)}
    for each in COMMANDS:
        command = typer.main.get_command(each.load())
        found[each.name,] = command
        for name, inner in getattr(command, "commands", {}).items():
            found[each.name, name] = inner
    return found


FOUND = all_commands()
NAMES = [" ".join(words) for words in FOUND]


def test_the_port_of_a_page_has_one_name():
    for name in ("run", "train", "live"):
        options = {word for each in FOUND[name,].params for word in each.opts}
        assert "--live-port" in options
        assert "--port" not in options


def help_of(words, flag="--help", width=WIDTH):
    """The help; of `train` that of all options, unless a flag is given."""
    if words == ["train"] and flag == "--help":
        flag = "--help-all"
    shown = CliRunner().invoke(
        app, [*words, flag], prog_name="switchgnn", env={"COLUMNS": str(width)}
    )
    assert shown.exit_code == 0, shown.output
    return shown.output


def example_of(command):
    """The words after the name of the program."""
    assert command.epilog, "it has no example"
    assert command.epilog.startswith(EXAMPLE)
    program, *words = shlex.split(command.epilog.removeprefix(EXAMPLE))
    assert program == "switchgnn"
    return words


def problems(text):
    """What does not fit: lines that are too long, and words that are cut."""
    long = [line for line in text.splitlines() if len(line) > WIDTH]
    return long + [line for line in text.splitlines() if "…" in line]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_cut_at_80_columns(name):
    text = help_of(name.split())
    assert problems(text) == []
    for parameter in FOUND[tuple(name.split())].params:
        if not getattr(parameter, "hidden", False) and parameter.param_type_name == "option":
            for option in (*parameter.opts, *parameter.secondary_opts):
                assert re.search(rf"{re.escape(option)}\b", text), option


def test_what_does_not_fit_is_noticed():
    long = typer.Typer()

    @long.command()
    def command(word: str = typer.Option("", help="One: " + "x" * 60)) -> None: ...

    shown = CliRunner().invoke(long, ["--help"], env={"COLUMNS": str(WIDTH)}).output
    assert problems(shown)
    assert problems("x" * (WIDTH + 1))


@pytest.mark.parametrize("name", [each for each in NAMES if each != "train"])
def test_h_is_help(name):
    assert help_of(name.split(), "-h") == help_of(name.split())


def test_the_help_of_train_has_the_common_options():
    text = help_of(["train"], "-h")
    assert problems(text) == []
    assert len(COMMON) <= 22
    shown = {each.name for each in FOUND["train",].params if not each.hidden} - {"help_all"}
    assert shown == set(COMMON)
    for each in FOUND["train",].params:
        (name, *_) = each.opts
        assert bool(re.search(rf"^│ +{name} ", text, re.MULTILINE)) == (
            each.name in {*COMMON, "help_all"}
        ), name


def test_help_all_has_every_option_of_train():
    text = help_of(["train"], "--help-all")
    assert problems(text) == []
    for each in FOUND["train",].params:
        for name in (*each.opts, *each.secondary_opts):
            assert re.search(rf"{name}\b", text), name
    # Only this help: those that follow are short again.
    assert "--bin-memory" not in help_of(["train"], "-h")


@pytest.mark.parametrize("name", NAMES)
def test_options_have_panels_by_subject(name):
    """All but those that a short help needs no order for."""
    command = FOUND[tuple(name.split())]
    options = [each for each in command.params if each.param_type_name == "option"]
    bare = [each.name for each in options if not each.rich_help_panel and not each.hidden]
    assert len(bare) <= 6, bare


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_an_example_that_it_takes(name):
    words = example_of(FOUND[tuple(name.split())])
    line = f" {EXAMPLE}{shlex.join(['switchgnn', *words])} ".ljust(WIDTH)
    assert line.rstrip() in [each.rstrip() for each in help_of(name.split()).splitlines()]
    parts = name.split()
    if parts:
        assert words[: len(parts)] == parts
    # The parser itself: unknown options and values out of range are errors.
    if tuple(words[:2]) in FOUND:
        command, rest = FOUND[tuple(words[:2])], words[2:]
    else:
        command, rest = FOUND[tuple(words[:1])], words[1:]
    with command.make_context("switchgnn", rest):
        pass


@pytest.mark.whole
@pytest.mark.parametrize("name", RUN)
def test_an_example_works(name, tmp_path):
    done = switchgnn(*example_of(FOUND[name,]), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("late", COMMANDS, ids=lambda each: each.name)
def test_the_list_has_the_first_line_of_each_help(late):
    assert FOUND[late.name,].help.splitlines()[0] == late.help
    text = help_of([])
    assert re.search(rf"^│ {late.name} ", text, re.MULTILINE)


@pytest.mark.parametrize("name", ["run", "train"])
def test_the_grammar_of_faults_is_told(name):
    text = " ".join(help_of([name], width=300).split())
    grammar = text[text.index("--faults") :]
    for word in (*(each.name for each in fields(FaultRates)), *DIRECTIONS, "workers", "cables"):
        assert re.search(rf"\b{word}\b", grammar), word
    # What it shows as an example is one.
    (shown,) = re.findall(r"\bAs (\S+=\S+)", grammar)
    assert Faults.parse(shown).seed == 7


@pytest.mark.parametrize("name", ["plan", "run", "train"])
def test_strategies_are_listed_and_completed(name):
    text = help_of([name], width=300)
    for part, names in {**KNOWN, "strategy": PRESETS}.items():
        assert ", ".join(names) in text
        assert set(completed(name, f"--{part}")) == set(names)


def test_what_train_takes_is_listed_and_completed():
    pytest.importorskip("torch_geometric")
    data = pytest.importorskip("switchgnn.training.data.load").DATASETS
    models = pytest.importorskip("switchgnn.training.layers.models").MODELS
    text = help_of(["train"], width=300)
    transports = [each.name for each in (*TRANSPORTS, AUTO)]
    for option, names in (("data", data), ("model", models), ("transport", transports)):
        assert set(completed("train", f"--{option}")) == set(names)
        for each in names:
            assert re.search(rf"\b{re.escape(each)}\b", text), each
    assert set(completed("train", "--pipeline")) == {"both", "intra", "inter", "sequential"}


def test_train_uses_auto_by_default():
    text = " ".join(help_of(["train"], width=300).split())
    transport = text[text.index("--transport NAME") :]
    assert re.search(r"\[default: \((\S+)\)\]", transport)[1] == AUTO.name
    assert DEFAULT is AUTO


def completed(*words):
    """The completions of a shell after these words."""
    environment = {
        "_SWITCHGNN_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("switchgnn", *words, "")),
        "COMP_CWORD": str(len(words) + 1),
    }
    done = CliRunner().invoke(app, [], prog_name="switchgnn", env=environment)
    assert done.exit_code == 0, done.output
    return done.output.split()
