"""Pages of the command line, from the application that `switchgnn` runs."""

import html
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import typer

from switchgnn.base.options import show_all_options
from switchgnn.commands.application import COMMANDS, app

FOLDER = "commands"
PROGRAM = "switchgnn"


def command_names() -> list[str]:
    """Return the names of all commands, in the order in which `switchgnn -h` lists them."""
    return [each.name for each in COMMANDS]


def all_commands() -> str:
    """Return the page that lists all commands, in Markdown."""
    lines = [f"# {PROGRAM}", "", str(app.info.help)]
    panel = None
    for each in COMMANDS:
        if each.panel != panel:
            panel = each.panel
            lines += ["", f"## {panel}", "", "| | |", "|---|---|"]
        lines.append(f"| [`{PROGRAM} {each.name}`]({each.name}.md) | {_cell(each.help)} |")
    return "\n".join(lines) + "\n"


def command_page(name: str) -> str:
    """Return the page of a command and of all that is below it, in Markdown."""
    (late,) = (each for each in COMMANDS if each.name == name)
    command = typer.main.get_command(late.load())
    show_all_options(command)
    above = typer.main.get_command(app).make_context(PROGRAM, [], resilient_parsing=True)
    return "\n".join(_described(command, f"{PROGRAM} {name}", above, "#")) + "\n"


def _described(command: Any, path: str, above: Any, heading: str) -> Iterator[str]:  # noqa: ANN401
    """Describe a command, and then those below it.

    Args:
        command: of Click, whichever copy of it Typer uses.
        path: the words that choose it.
        above: the context of the one above it.
        heading: the marks of its heading.
    """
    context = command.make_context(path.rpartition(" ")[2], [], above, resilient_parsing=True)
    yield f"{heading} {path}\n"
    yield _text(command.help or "")
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"\n```text\n{path} {usage}\n```\n"
    panels: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            usual = "Options" if parameter.param_type_name == "option" else "Arguments"
            panels[getattr(parameter, "rich_help_panel", None) or usual].append(record)
    for title, rows in panels.items():
        yield f"\n**{title}**\n\n| | |\n|---|---|"
        yield from (f"| {_code(names)} | {_cell(text)} |" for names, text in rows)
    if command.epilog:
        said, _, example = command.epilog.partition(": ")
        yield f"\n{said}:\n\n```text\n{example}\n```\n" if example else f"\n{_text(said)}\n"
    for name in getattr(command, "commands", {}):
        yield ""
        yield from _described(command.commands[name], f"{path} {name}", context, "##")


def _code(words: str) -> str:
    return f"<code>{_cell(words)}</code>"


def _cell(text: str) -> str:
    """Return words of a help text for one cell of a table, in which nothing is a mark."""
    marked = html.escape(" ".join(text.split()), quote=False)
    for mark in "\\`*_|[]":
        marked = marked.replace(mark, f"&#{ord(mark)};")
    return marked


def _text(text: str) -> str:
    return "\n\n".join(_cell(paragraph) for paragraph in text.split("\n\n"))
