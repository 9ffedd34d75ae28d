# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The scenario in virtual time that is most like a drawn run: there a failure repeats."""

from dataclasses import asdict

from switchgnn.commands.run.job import RunOptions
from switchgnn.host.wire.faults import Faults
from switchgnn.lab.virtual.scenario.scenario import Rates, Scenario, scenario_line

# A link of which nothing is said by its name.
_ANY = "w1000000"


def scenario_words(run: RunOptions) -> list[str]:
    """Return the command for the scenario that has the graph, plan and rates of a drawn run.

    What goes wrong on single links alone is left out: a scenario has one rate for all of them.
    """
    faults, leaf_spine = Faults.parse(run.faults), run.leaf_spine
    up, down = (Rates(**asdict(faults.of(_ANY, direction))) for direction in ("up", "down"))
    scenario = Scenario(
        seed=run.seed,
        graph=run.graph,
        workers=run.workers,
        leaves=leaf_spine.leaves if leaf_spine else 0,
        spines=leaf_spine.spines if leaf_spine else 0,
        slots=run.slots,
        send=str(run.asked.send),
        width=run.features or 1,
        rounds=run.rounds,
        window=run.pace.window,
        patience=run.pace.patience,
        up=up,
        down=down,
        cables=up if leaf_spine else Rates(),
    )
    return ["switchgnn", "soak", "--simulated", "--scenario", scenario_line(scenario)]
