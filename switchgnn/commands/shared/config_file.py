"""`--config`: options of a command from a TOML file; those on the command line count more."""

import reprlib
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperOption

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.names import did_you_mean
from switchgnn.base.records import read_toml

_MOST_BYTES = 65536
_NOT_IN_FILES = ("config", "help", "help-all")


class ConfigError(SwitchGNNError):
    """A file with options cannot be read, or has what is no option."""


def _read_config(context: typer.Context, file: Path | None) -> Path | None:
    if file is not None and not context.resilient_parsing:
        options = _options(context)
        table = read_toml(file, _MOST_BYTES, "configuration", ConfigError)
        context.default_map = {}
        for key, value in table.items():
            if key not in options:
                hint = did_you_mean(key.replace("_", "-"), options)
                raise ConfigError(
                    f"--config {file}: {reprlib.repr(key)} is no option of this command"
                    f"{hint or '; --help lists those that there are.'}"
                )
            words = _words(file, key, options[key], value)
            try:
                options[key].process_value(context, words)
            except typer.BadParameter as error:
                shown = f"{key} = {reprlib.repr(value)}"
                raise ConfigError(f"--config {file}: {shown}: {error.message}") from error
            context.default_map[options[key].name or key] = words
    return file


ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        callback=_read_config,
        is_eager=True,
        show_default=False,
        help="Read options such as workers = 4 from this TOML file; the command line wins.",
    ),
]


def _options(context: typer.Context) -> dict[str, TyperOption]:
    return {
        name.removeprefix("--"): option
        for option in context.command.params
        if isinstance(option, TyperOption)
        for name in option.opts
        if name.startswith("--") and name.removeprefix("--") not in _NOT_IN_FILES
    }


def _words(file: Path, key: str, option: TyperOption, value: Any) -> str | list[str]:  # noqa: ANN401
    """Return a value as the words that a user would type."""
    if option.multiple != isinstance(value, list):
        form = "may be repeated: write a list" if option.multiple else "takes one value, no list"
        raise ConfigError(f"--config {file}: {key} {form}.")
    if isinstance(value, list):
        return [str(each) for each in value]
    return str(value)
