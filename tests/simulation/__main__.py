# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.simulation`, from the checkout: exchanges in virtual time with random faults."""

import random
import sys
from dataclasses import dataclass
from pathlib import Path

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.options import option, with_groups
from switchgnn.commands.shared.options import SiteOptions, json_option
from switchgnn.commands.shared.outputs import check_outputs
from tests.simulation.soak_simulated import SimulatedOptions, soak_simulated

_SEEDS = 2**32
_MINUTES = 1.0
_FAILED = 2

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True, kw_only=True)
class AskedSoak:
    """The options of `python -m tests.simulation`."""

    minutes: float | None = option(
        None, "NUMBER", "Begin no scenario after this many minutes.", min=0, shown=f"{_MINUTES:g}"
    )
    seed: int | None = option(
        None,
        "N",
        "All scenarios follow from it. With neither --exchanges nor --minutes that scenario alone.",
        min=0,
        shown="another each time",
    )
    site: SiteOptions
    exchanges: int | None = option(None, "N", "End after this many exchanges.", min=1)
    scenario: str | None = option(
        None, "WHICH", "Run this scenario only: a JSON or TOML file, or JSON."
    )
    out: Path | None = option(
        None,
        "FOLDER",
        "Shrink failing scenarios; write them and their events to this folder.",
    )
    as_json: bool = json_option()

    def simulation(self, seed: int) -> SimulatedOptions:
        """Return the soak that is asked for."""
        drawn = self.seed is not None and self.exchanges is None and self.minutes is None
        return SimulatedOptions(
            seed,
            self.exchanges,
            _MINUTES if self.minutes is None else self.minutes,
            self.site.leaves_and_spines(),
            self.site.backend,
            self.scenario,
            self.scenario is not None or drawn,
            self.out,
        )


@app.command(epilog="Example: python -m tests.simulation --exchanges 3 --seed 7")
@with_groups
def soak(asked: AskedSoak) -> None:
    """Run whole exchanges in this process and in virtual time, with random faults.

    Each scenario draws its workers, graph, slots, features and faults. Ctrl-C
    ends it early; the summary comes in any case. Exit code 0 when every check
    held, 1 when a sum was wrong, 2 when another check failed or a scenario
    could not be run.
    """
    check_outputs({"--out": asked.out})
    seed = random.SystemRandom().randrange(_SEEDS) if asked.seed is None else asked.seed
    raise typer.Exit(soak_simulated(asked.simulation(seed), as_json=asked.as_json))


if __name__ == "__main__":
    try:
        app(prog_name="python -m tests.simulation")
    except SwitchGNNError as error:
        typer.echo(f"Error: {error}", err=True)
        sys.exit(_FAILED)
