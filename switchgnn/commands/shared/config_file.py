"""`--config`: options of a command from a TOML file; those on the command line count more."""

import inspect
import reprlib
import typing
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperOption

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.names import did_you_mean
from switchgnn.base.records import read_toml

_MOST_BYTES = 65536
_NOT_IN_FILES = ("config", "help", "help-all")
# The type of an option, its types in TOML, and their name.
_KINDS: tuple[tuple[type, tuple[type, ...], str], ...] = (
    (bool, (bool,), "true or false"),
    (int, (int,), "a whole number"),
    (float, (int, float), "a number"),
)


class ConfigError(SwitchGNNError):
    """A file with options cannot be read, or has what is no option."""


def _read_config(context: typer.Context, file: Path | None) -> Path | None:
    """Make the options of a file the defaults of the command."""
    if file is not None and not context.resilient_parsing:
        options = _options(context)
        table = read_toml(file, _MOST_BYTES, "configuration", ConfigError)
        for key in table:
            if key not in options:
                hint = did_you_mean(key.replace("_", "-"), options)
                raise ConfigError(
                    f"--config {file}: {reprlib.repr(key)} is no option of this command"
                    f"{hint or '; --help lists those that there are.'}"
                )
        context.default_map = {
            options[key].name or key: _value(context, file, key, options[key], value)
            for key, value in table.items()
        }
    return file


ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        callback=_read_config,
        is_eager=True,
        show_default=False,
        help="Read options from a TOML file, such as workers = 4; those given here count more.",
    ),
]


def _options(context: typer.Context) -> dict[str, TyperOption]:
    """Return the options of the command, by their names without dashes."""
    return {
        name.removeprefix("--"): option
        for option in context.command.params
        if isinstance(option, TyperOption)
        for name in option.opts
        if name.startswith("--") and name.removeprefix("--") not in _NOT_IN_FILES
    }


def _value(
    context: typer.Context, file: Path, key: str, option: TyperOption, value: object
) -> object:
    """Check the value of a key and return it."""
    kinds, words = _kinds(context, option)
    if option.multiple and not isinstance(value, list):
        raise ConfigError(f"--config {file}: {key} may be repeated: write a list.")
    for each in value if option.multiple and isinstance(value, list) else [value]:
        # To Python a bool is an int.
        if not isinstance(each, kinds) or (isinstance(each, bool) and bool not in kinds):
            raise ConfigError(
                f"--config {file}: {key} = {reprlib.repr(each)}, which must be {words}."
            )
    try:
        option.process_value(context, value)
    except typer.BadParameter as error:
        raise ConfigError(
            f"--config {file}: {key} = {reprlib.repr(value)}: {error.message}"
        ) from error
    return value


def _kinds(context: typer.Context, option: TyperOption) -> tuple[tuple[type, ...], str]:
    """Return the types of an option in TOML, and their name."""
    function = context.command.callback
    hints = typing.get_type_hints(inspect.unwrap(function)) if function else {}
    hint = hints[option.name or ""]
    # `list[str] | None` has the argument `list[str]`, and that `str`.
    found = {hint, *typing.get_args(hint)}
    found |= {inner for each in found for inner in typing.get_args(each)}
    for kind, taken, words in _KINDS:
        if kind in found:
            return taken, words
    return (str,), "a string"
