"""The result as a table."""

from collections.abc import Iterable
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.line import Goal, ResultLine
from bench.measure import Samples

_WIDTH = 150  # where the output is not a terminal, which would have a width
_HEADINGS = ("figure", "what", "unit", "A", "B", "A / B (min-max)", "goal", "reached")
_REACHED = {True: "[green]yes[/]", False: "[red]no[/]", None: "-"}


def make_console() -> Console:
    """Return a console that is wide enough for the table when it is not a terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH)


def render(lines: Iterable[ResultLine]) -> Table:
    """Return the table of all lines; notes follow as lines of their own."""
    table = Table(title="Medians; ratios are of measurements made in turn")
    for heading in _HEADINGS:
        table.add_column(heading, overflow="fold", justify="left")
    figure = ""
    for line in lines:
        if figure and line.figure != figure:
            table.add_section()
        table.add_row(
            "" if line.figure == figure else line.figure,
            line.what + (f"\n[dim]{line.note}[/]" if line.note else ""),
            line.unit,
            _samples(line.a),
            _samples(line.b),
            _ratio(line.ratios),
            _goal(line.goal),
            _REACHED[line.reached],
        )
        figure = line.figure
    return table


def _samples(samples: Samples | None) -> str:
    if samples is None:
        return ""
    return f"{_number(samples.median)}\n[dim]{samples.label}[/]"


def _ratio(ratios: tuple[float, ...]) -> str:
    if not ratios:
        return ""
    return f"{median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"


def _goal(goal: Goal) -> str:
    parts = []
    if goal.ratio is not None:
        parts.append(f"A / B >= {goal.ratio:g}")
    if goal.ratio_most is not None:
        parts.append(f"A / B <= {goal.ratio_most:g}")
    if goal.least is not None:
        parts.append(f"A >= {_number(goal.least)}")
    if goal.most is not None:
        parts.append(f"A <= {_number(goal.most)}")
    return "\n".join(parts)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
