"""`--config FILE` of `run` and `train`: what it takes, what counts more, and what it refuses."""

import re
import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from switchgnn.base.options import PLAIN, with_groups
from switchgnn.commands.application import COMMANDS, app
from switchgnn.commands.run import app as run_app
from switchgnn.commands.shared.config_file import ConfigError
from switchgnn.commands.shared.options import JobNetworkOptions
from switchgnn.commands.train.command import app as train_app
from switchgnn.host.base.pace import CongestionRule, Pace
from switchgnn.host.links.faults import DIRECTIONS, FaultRates, Faults
from switchgnn.host.registry import AUTO, TRANSPORTS
from switchgnn.planner.presets import KNOWN, PRESETS
from switchgnn.training.base.options import MODELS, TrainingOptions, TrainOptions
from switchgnn.training.data.load import DATASETS

CONFIGURED = {"run": typer.main.get_command(run_app), "train": typer.main.get_command(train_app)}


@pytest.fixture
def config(tmp_path):
    def write(text):
        file = tmp_path / "options.toml"
        file.write_text(text)
        return file

    return write


def taken(file, *words, command="run"):
    """The values that the function of a command is called with; choices as their words."""
    context = CONFIGURED[command].make_context(command, ["--config", str(file), *words])
    return {name: getattr(value, "value", value) for name, value in context.params.items()}


def test_options_come_from_the_file(config):
    file = config(
        'workers = 3\ngraph = "karate"\ntimeout = 5\nfabric = "loopback"\nkeep = true\n'
        'tls = "certificates"\ncongestion = "none"\njson = true\n'
    )
    values = taken(file)
    # In older versions of Typer a path is made when the function is called.
    assert Path(values["tls"]) == Path("certificates")
    # What it does not say, rounds, is as usual.
    said = {"workers": 3, "graph": "karate", "timeout": 5.0, "fabric": "loopback", "keep": True}
    said |= {"congestion": "none", "as_json": True, "rounds": 3}
    assert {name: values[name] for name in said} == said


def test_the_command_line_counts_more(config):
    file = config('workers = 3\nkeep = true\nbackend = "python"\ntopology = "leaf-spine"\n')
    values = taken(file, "--workers", "5", "--no-keep", "--backend", "auto", "--topology", "star")
    said = {"workers": 5, "keep": False, "backend": "auto", "topology": "star"}
    assert {name: values[name] for name in said} == said


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
        ("zzz = 3", "--help lists"),
        ("help = true", "'help' is no option"),
        ("workers = true", "workers = True: "),
        ("workers = [3]", "workers takes one value, no list"),
        ("workers = 0", "workers = 0: "),
        ("timeout = false", "timeout = False: "),
        ("keep = 3", "keep = 3: "),
        ('fabric = "token-ring"', "'token-ring'"),
        ("[run]\nworkers = 3", "'run' is no option"),
        *((line, "is not TOML") for line in ("workers 3", "graph = " + "[" * 20_000)),
        ("seed = " + "9" * 20_000, "is not TOML"),
        ('workers = "' + "x" * 60_000 + '"', "workers = 'xxx"),
        ("x" * 60_000 + " = 3", "is no option"),
        ('transport = "switch"', "transport may be repeated: write a list"),
        ("transport = [3]", "transport = [3]: No transport '3'"),
        ('transport = ["pigeons"]', "pigeons"),
        ("lr = -1", "lr = -1"),
    ],
)
def test_what_it_refuses(config, line, words):
    """Of `run`, or of `train` what that has alone."""
    command = "train" if line.startswith(("transport", "lr")) else "run"
    sentence = refused(config(line), command)
    assert words in sentence
    assert len(sentence) < 500


def test_a_file_that_is_not_there(tmp_path):
    assert "No such file" in refused(tmp_path / "none.toml")
    assert "not a regular file" in refused(tmp_path)


WIDTH = 80
EXAMPLE = "Example: "


def all_commands():
    found = {(): typer.main.get_command(app)}
    for each in COMMANDS:
        command = typer.main.get_command(each.load())
        found[each.name,] = command
        for name, inner in getattr(command, "commands", {}).items():
            found[each.name, name] = inner
    return found


FOUND = all_commands()
NAMES = [" ".join(words) for words in FOUND]


def help_of(words, flag="--help", width=WIDTH):
    """The help; of `train` that of all options, unless a flag is given."""
    if words == ["train"] and flag == "--help":
        flag = "--help-all"
    shown = CliRunner().invoke(
        app, [*words, flag], prog_name="switchgnn", env={"COLUMNS": str(width)}
    )
    assert shown.exit_code == 0, shown.output
    return shown.output


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_cut_at_80_columns(name):
    text = help_of(name.split())
    assert [line for line in text.splitlines() if len(line) > WIDTH or "…" in line] == []
    for parameter in FOUND[tuple(name.split())].params:
        if not getattr(parameter, "hidden", False) and parameter.param_type_name == "option":
            for option in (*parameter.opts, *parameter.secondary_opts):
                assert re.search(rf"{re.escape(option)}\b", text), option


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_an_example_that_it_takes(name):
    epilog = FOUND[tuple(name.split())].epilog
    assert epilog and epilog.startswith(EXAMPLE)
    program, *words = shlex.split(epilog.removeprefix(EXAMPLE))
    assert program == "switchgnn"
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


@pytest.mark.parametrize("name", ["run", "train"])
def test_the_grammar_of_faults_is_told(name):
    text = " ".join(help_of([name], width=300).split())
    grammar = text[text.index("--faults") :]
    for word in (*(each.name for each in fields(FaultRates)), *DIRECTIONS, "workers", "cables"):
        assert re.search(rf"\b{word}\b", grammar), word
    # What it shows as an example is one.
    (shown,) = re.findall(r"\bExample: (\S+=\S+)", grammar)
    assert Faults.parse(shown).seed == 7


@pytest.mark.parametrize("name", ["plan", "run", "train"])
def test_strategies_are_listed_and_completed(name):
    text = help_of([name], width=300)
    for part, names in {**KNOWN, "strategy": PRESETS}.items():
        assert ", ".join(names) in text
        assert set(completed(name, f"--{part}")) == set(names)
    assert re.search(r"--strategy.*?\[default: \(?best\b", text, re.DOTALL)


def test_what_train_takes_is_listed_and_completed():
    text = help_of(["train"], width=300)
    transports = [each.name for each in (*TRANSPORTS, AUTO)]
    for each_option, names in (("data", DATASETS), ("model", MODELS), ("transport", transports)):
        assert set(completed("train", f"--{each_option}")) == set(names)
        for each in names:
            assert re.search(rf"\b{re.escape(each)}\b", text), each
    assert set(completed("train", "--pipeline")) == {"both", "intra", "inter", "sequential"}


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


def test_training_has_one_set_of_defaults():
    asked = TrainingOptions()
    shape = asked.shape()
    assert asked.options(shape, 0) == TrainOptions(input_dropout=shape.dropout)
    assert asked.weight_decay == 5e-4


def test_the_window_and_the_rule_of_congestion_reach_the_workers():
    asked = JobNetworkOptions(window=40, congestion=CongestionRule.PAPER)
    assert asked.pace(3.0) == Pace(window=40, timeout=3.0, congestion=CongestionRule.PAPER)


def test_the_short_help_and_that_of_all_options():
    short, long = help_of(["train"], "-h"), help_of(["train"])
    for words in ("--epochs", "Train for N epochs.", "[default: 100]", "--help-all"):
        assert words in short
        assert words in long
    for words in ("--dropout", "--bits", "Fewer bytes", "--congestion", "--background"):
        assert words not in short
        assert (words in long) == (words != "--background")


@dataclass(frozen=True)
class Stay:
    host: Annotated[str, typer.Option(help="Where.")]
    days: int = PLAIN.option("N", "How long.", min=1, default=3)


def test_no_two_options_of_a_command_have_one_name():
    def visit(here: Stay, there: Stay) -> None: ...

    with pytest.raises(TypeError, match="two options named host"):
        with_groups(visit)
