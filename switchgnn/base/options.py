"""Options of commands as fields of dataclasses, so that each is declared once."""

import copy
import dataclasses
import functools
import inspect
import re
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Annotated, Any

import typer

from switchgnn.base.errors import SwitchGNNError

_OPTION = "option"
_HELP_ALL = "help_all"


@dataclasses.dataclass(frozen=True)
class OptionPanel:
    """A panel of options in the help; declares them as fields of dataclasses, for `with_groups`."""

    title: str | None = None  # None: that of options without a panel

    def option(
        self,
        metavar: str | None,
        text: str,
        *flags: str,
        default: Any = None,  # noqa: ANN401
        shown: bool | str | None = None,
        **more: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Declare an option; `more` as `typer.Option` has.

        `metavar` is the placeholder of its value, `flags` its names where they do not follow from
        the field's, and `shown` the default value in the help, or whether it is shown.
        """
        if shown is None:
            shown = default is not None
        info = self.info(text, *flags, metavar=metavar, show_default=shown, **more)
        return dataclasses.field(default=default, metadata={_OPTION: info})

    def flag(self, text: str, *names: str, **more: Any) -> Any:  # noqa: ANN401
        """Declare an option without a value, off by default, by its names as of `option`."""
        return self.option(None, text, *names, default=False, shown=False, **more)

    def info(self, text: str, *names: str, **more: Any) -> Any:  # noqa: ANN401
        """Declare an option as an annotation, with `more` as `typer.Option` has."""
        return typer.Option(*names, rich_help_panel=self.title, help=text, **more)


def argument(metavar: str, text: str, shown: bool | str = False) -> Any:  # noqa: ANN401
    """Declare an argument without a name, which may be left out, as a field of a dataclass."""
    info = typer.Argument(metavar=metavar, help=text, show_default=shown)
    return dataclasses.field(default=None, metadata={_OPTION: info})


def with_short_help(*common: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return `with_groups` for a command with many options.

    `--help` shows the options of common parameters, given by name, `--help-all` the others as well.
    """
    return lambda command: with_groups(command, common)


def show_all_options(command: Any) -> None:  # noqa: ANN401
    """Show the options in the help of a command of Click that only `--help-all` has."""
    for parameter in command.params:
        if parameter.name in getattr(command.callback, "rare", ()):
            parameter.hidden = False


def with_groups(
    command: Callable[..., None], common: Collection[str] | None = None
) -> Callable[..., None]:
    """Replace each dataclass parameter of a Typer command by options, one for each field.

    A group is a dataclass whose fields are annotated with `typer.Option`, declared in an
    `OptionPanel`, or groups themselves. Users see the fields; the command, whose annotations are
    not strings, gets the object. TypeError if two options have the same name. `common`: see
    `with_short_help`.
    """
    hints = typing.get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
    shown: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        own = parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for each in _fields(groups[name]) if name in groups else [own]:
            if each.name in shown:
                raise TypeError(f"{command.__name__} has two options named {each.name}")
            shown[each.name] = each
    rare: set[str] = set()
    if common is not None:
        rare = {
            name for name, each in shown.items() if name not in common and _info(each) is not None
        }
        shown = {name: _hidden(each) if name in rare else each for name, each in shown.items()}
        shown[_HELP_ALL] = inspect.Parameter(
            _HELP_ALL, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_HelpAll
        )

    def run(**values: Any) -> None:  # noqa: ANN401
        values.pop(_HELP_ALL, None)
        for name, group in groups.items():
            values[name] = _made(group, values)
        command(**values)

    # `__wrapped__` would lead to the signature with groups.
    for attribute in functools.WRAPPER_ASSIGNMENTS:
        if hasattr(command, attribute):
            setattr(run, attribute, getattr(command, attribute))
    run.__annotations__ = {name: each.annotation for name, each in shown.items()}
    run.__signature__ = inspect.Signature(list(shown.values()))  # type: ignore[attr-defined]
    run.rare = rare  # type: ignore[attr-defined]
    return run


def shared_fields(given: Any, kind: type) -> dict[str, Any]:  # noqa: ANN401
    """Return the fields of a dataclass that another one has, too, by name."""
    names = {field.name for field in dataclasses.fields(kind)}
    return {name: value for name, value in vars(given).items() if name in names}


def _fields(group: Any) -> Iterator[inspect.Parameter]:  # noqa: ANN401
    hints = typing.get_type_hints(group, include_extras=True)
    for field in dataclasses.fields(group):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint):
            yield from _fields(hint)
            continue
        info = field.metadata.get(_OPTION)
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty
            if field.default is dataclasses.MISSING
            else field.default,
            annotation=hint if info is None else Annotated[hint, info],
        )


def _made(group: Any, values: dict[str, Any]) -> Any:  # noqa: ANN401
    hints: Mapping[str, Any] = typing.get_type_hints(group)
    return group(
        **{
            field.name: _made(hints[field.name], values)
            if dataclasses.is_dataclass(hints[field.name])
            else values.pop(field.name)
            for field in dataclasses.fields(group)
        }
    )


def _info(parameter: inspect.Parameter) -> Any:  # noqa: ANN401
    found = typing.get_args(parameter.annotation)[1:]
    return next((each for each in found if isinstance(each, typer.models.OptionInfo)), None)


def _hidden(parameter: inspect.Parameter) -> inspect.Parameter:
    info = copy.copy(_info(parameter))
    info.hidden = True
    hint = typing.get_args(parameter.annotation)[0]
    return parameter.replace(annotation=Annotated[hint, info])


def _print_all(context: typer.Context, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        show_all_options(context.command)
        typer.echo(context.get_help())
        raise typer.Exit


_HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all", is_eager=True, callback=_print_all, help="Show all options and exit."
    ),
]


PLAIN = OptionPanel()
DATA = OptionPanel("Data")
MODEL = OptionPanel("Model")
TRAINING = OptionPanel("Training")
EXCHANGE = OptionPanel("Exchange")
FEWER_BYTES = OptionPanel("Fewer bytes")
PLAN = OptionPanel("Plan")
NETWORK = OptionPanel("Network")
CONGESTION = OptionPanel("Congestion")
FAULTS = OptionPanel("Faults")
PACKETS = OptionPanel("Which packets")
OUTPUT = OptionPanel("Output")
SWITCHES, JOB, PROGRAM = OptionPanel("Switches"), OptionPanel("Job"), OptionPanel("Program")
PORTS, P4RUNTIME, TLS, SERVICE = map(OptionPanel, ("Ports", "P4Runtime", "TLS", "Service"))


_UNITS = {
    "": 1,
    "k": 10**3,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "ki": 2**10,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
}
# Exact as a float, and beyond the memory of any machine.
_MOST = 1 << 60
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMG]i?|)B?")


def parse_bytes(name: str, text: str) -> int:
    """Return a size such as 10MB or 8MiB in bytes; refuse other texts, and larger sizes."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise SwitchGNNError(f"Cannot read {name} {text}: write it as 10MB or 8MiB.")
    size = float(found[1]) * _UNITS[found[2]]
    if size > _MOST:
        raise SwitchGNNError(f"{name} is too much: give at most {_MOST >> 50:,} PiB.")
    return int(size)
