# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn soak --simulated`: exchanges in virtual time, each repeatable from its seed."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from switchgnn.commands.shared.interruption import Interruption
from switchgnn.commands.shared.sentences import counted
from switchgnn.errors import SwitchGNNError
from switchgnn.topologies import Backend
from switchgnn.virtual.diagram.svg import svg_diagram
from switchgnn.virtual.diagram.text import text_diagram
from switchgnn.virtual.scenario.draw import Wish, draw_scenario
from switchgnn.virtual.scenario.files import read_scenario, scenario_text
from switchgnn.virtual.scenario.scenario import Scenario
from switchgnn.virtual.scenario.shrink import shrink
from switchgnn.virtual.soak import Soak, SoakSums

_MOST_TRIES, _MOST_STEPS = 400, 60


@dataclass(frozen=True)
class SimulatedOptions:
    """What to simulate.

    Attributes:
        seed: of the first scenario; the next one has the next seed.
        exchanges: end behind that many; None: when the time is over.
        minutes: begin no scenario after so long.
        leaves_and_spines: their numbers; None: stars.
        backend: what switches run the program as; None: native code where a compiler is there.
        scenario: a file with the only scenario, in place of drawn ones; None: they are drawn.
        only: whether the scenario of the seed is the only one; if it fails, it is shrunk.
        diagram: where a picture of the shrunk scenario goes; None: nowhere.
    """

    seed: int
    exchanges: int | None
    minutes: float
    leaves_and_spines: tuple[int, int] | None
    backend: Backend | None
    scenario: Path | None
    only: bool
    diagram: Path | None = None


def soak_simulated(options: SimulatedOptions, *, as_json: bool) -> int:
    """Soak, print what came of it, and return the exit code.

    Raises:
        ScenarioError: the file holds no scenario.
    """
    leaves, spines = options.leaves_and_spines or (0, 0)
    soak = Soak(Wish(leaves, spines, (options.backend or Backend.AUTO).value))
    scenarios = (
        iter([read_scenario(options.scenario)])
        if options.scenario
        else soak.scenarios(options.seed)
    )
    started = time.monotonic()
    with Interruption() as interruption:
        interruption.later()

        def goes_on(sums: SoakSums) -> bool:
            if options.only and sums.scenarios:
                return False
            if options.exchanges is not None and sums.exchanges >= options.exchanges:
                return False
            over = options.exchanges is None and not options.only
            over = over and time.monotonic() - started >= 60 * options.minutes
            return not interruption.came and not (over and sums.scenarios)

        sums = soak.many(scenarios, lambda scenario: _command(scenario, options), goes_on)
        shrunk = _shrunk(soak, options, sums) if options.only and sums.failures else None
    seconds = time.monotonic() - started
    if as_json:
        told = {"seed": options.seed, **sums.to_dict(), "seconds": round(seconds, 3)}
        if shrunk is not None:
            told["shrunk"] = json.loads(scenario_text(shrunk))
        typer.echo(json.dumps(told))
    else:
        _print(Console(), options, sums, seconds)
    if shrunk is not None:
        _show(soak, shrunk, options.diagram, as_text=not as_json)
    return sums.exit_code


def _shrunk(soak: Soak, options: SimulatedOptions, sums: SoakSums) -> Scenario | None:
    """Return a small scenario that fails as the only one does."""
    failure = sums.failures[0]
    if not failure.name:
        return None
    whole = (
        read_scenario(options.scenario)
        if options.scenario
        else draw_scenario(failure.seed, soak.wish)
    )

    def shows(scenario: Scenario) -> bool:
        try:
            outcome = soak.run(scenario)
        except SwitchGNNError:
            return False
        return any(violation.name == failure.name for violation in outcome.violations)

    return shrink(whole, shows, _MOST_TRIES)


def _show(soak: Soak, shrunk: Scenario, picture: Path | None, *, as_text: bool) -> None:
    """Print a scenario and what leads to its failure, and draw that."""
    steps = soak.steps(shrunk, _MOST_STEPS)
    if as_text:
        for line in ("The same, with less:", scenario_text(shrunk), text_diagram(steps)):
            typer.echo(line)
    if picture is not None:
        picture.write_text(svg_diagram(steps), encoding="utf-8")


def _command(scenario: Scenario, options: SimulatedOptions) -> str:
    """Return the command that replays a scenario."""
    if options.scenario:
        return f"switchgnn soak --simulated --scenario {options.scenario}"
    where = ""
    if options.leaves_and_spines:
        leaves, spines = options.leaves_and_spines
        where = f" --topology leaf-spine --leaves {leaves} --spines {spines}"
    backend = f" --backend {options.backend.value}" if options.backend else ""
    return f"switchgnn soak --simulated --seed {scenario.seed}{where}{backend}"


def _print(console: Console, options: SimulatedOptions, sums: SoakSums, seconds: float) -> None:
    speed = 60 * sums.exchanges / seconds if seconds else 0.0
    lines = [
        f"{sums.exchanges:,} exchanges in {sums.scenarios:,} scenarios from seed {options.seed}: "
        f"{sums.frames:,} frames, {sums.virtual_seconds:,.0f} virtual seconds in {seconds:.0f} s "
        f"({speed:,.0f} exchanges per minute)",
        counted("What went wrong on purpose", dict(sums.faults)),
        f"Workers that gave up, as they had to: {sums.gave_up:,}.",
        f"SHA-256 of all traces: {sums.trace_digest}",
    ]
    for failure in sums.failures:
        lines += [f"Seed {failure.seed}: {failure.name}: {failure.what}"]
        lines += [f"  replay it: {failure.command}"]
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    if sums.scenarios and not sums.failures:
        console.print("[bold green]Nothing was otherwise than it must be.[/]", soft_wrap=True)
