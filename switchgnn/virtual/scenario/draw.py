# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Draws scenarios: each follows from its seed and what is asked for."""

from dataclasses import dataclass, fields, replace
from random import Random

from switchgnn.virtual.scenario.many_groups import with_many_groups
from switchgnn.virtual.scenario.misfits import with_misfits
from switchgnn.virtual.scenario.restarts import with_other_restarts
from switchgnn.virtual.scenario.scenario import Incident, IncidentKind, Rates, Scenario

_SENDS = ("multicast", "cover")
_SLOTS = (8, 16, 32, 64, 256)
_WIDTHS = (1, 32, 33, 64, 80)
# The default most often; wide ones only with enough slots, as few slots make many blocks.
_LANES = (32, 32, 32, 32, 8, 64, 256)
_BANK_LANES, _LEAST_ROOM = 32, 8
_SURGES = (0.0, 0.0, 0.0, 0.3)
_WINDOWS = (1, 2, 4, 8, 16, 16, 64)
# How bad a direction may be, and how often it is so.
_RATES = {"loss": 0.1, "duplicate": 0.1, "late": 0.05, "reorder": 0.05, "corrupt": 0.03}
_NO_FAULT = 0.4
_NO_RATES = 0.15
# Plans are drawn from this many graphs of each shape, so that a soak plans seldom.
_GRAPHS = 4
_SHAPES = ((20, 30), (60, 150), (120, 240), (240, 400))
_LONG = 60.0
# Where more lines are on the way, or there is less time, a worker may have bad luck too often in a
# row, and gives up although nobody is to blame.
_ON_CABLES, _PATIENCE, _IMPATIENT = 0.4, 20.0, 0.2


@dataclass(frozen=True)
class Wish:
    """What all scenarios of a soak have in common.

    Attributes:
        leaves, spines: no leaves: stars.
        backend: as a scenario has it.
        misfits: whether each has a worker that is mad, or differs from the others.
    """

    leaves: int = 0
    spines: int = 0
    backend: str = "auto"
    misfits: bool = False


def draw_scenario(seed: int, wish: Wish) -> Scenario:
    """Return the scenario of a seed; the same seed and wish give the same one."""
    source = Random(f"scenario/{seed}")  # noqa: S311
    least = max(2, wish.leaves)
    workers = source.randint(least, least + 3)
    vertices, edges = source.choice(_SHAPES)
    rounds = source.choice((1, 2, 4, 8))
    sessions = source.choice((1, 1, 1, 2, 3))
    patience = source.choice((_PATIENCE, _PATIENCE, 5.0))
    share = (_ON_CABLES if wish.leaves else 1.0) * (1.0 if patience == _PATIENCE else _IMPATIENT)
    calm = source.random() < _NO_RATES
    scenario = Scenario(
        seed=seed,
        graph=f"random:{vertices}:{edges}:{source.randrange(_GRAPHS)}",
        workers=workers,
        leaves=wish.leaves,
        spines=wish.spines,
        slots=source.choice(_SLOTS),
        send=source.choice(_SENDS),
        directions=source.choice(("forward", "forward", "both")),
        width=source.choice(_WIDTHS),
        rounds=rounds,
        sessions=sessions,
        window=source.choice(_WINDOWS),
        patience=patience,
        backend=wish.backend,
        queue_depth=source.choice((64, 16, 4)),
        queue_rate=source.choice((0.0, 0.0, 0.0, 200_000.0, 20_000.0)),
        turns=source.choice((0, 0, 1, 3)),
        latency=source.choice((5, 50, 50, 500, 5_000)),
        jitter=source.choice((0, 20, 200, 2_000)),
        up=Rates() if calm else _rates(source, share),
        down=Rates() if calm else _rates(source, share),
        cables=Rates() if calm or not wish.leaves else _rates(source, share),
        incidents=_incidents(source, workers, wish, patience, rounds * sessions),
    )
    scenario = with_many_groups(_with_surges(_with_other_lanes(scenario)))
    return with_other_restarts(with_misfits(scenario, always=wish.misfits))


def _with_other_lanes(scenario: Scenario) -> Scenario:
    """Return a scenario, now and then with frames of another width; its seed says when."""
    source = Random(f"lanes/{scenario.seed}")  # noqa: S311
    lanes = source.choice(_LANES)
    if lanes == scenario.lanes or scenario.slots * _BANK_LANES < lanes * _LEAST_ROOM:
        return scenario
    width = source.choice((scenario.width, lanes, lanes + 1, 2 * lanes + 16))
    return replace(scenario, lanes=lanes, width=width)


def _with_surges(scenario: Scenario) -> Scenario:
    """Return a scenario, now and then with features that outgrow earlier ones, as its seed says."""
    source = Random(f"surges/{scenario.seed}")  # noqa: S311
    return replace(scenario, surges=source.choice(_SURGES))


def _rates(source: Random, share: float) -> Rates:
    return Rates(
        **{
            each.name: 0.0
            if source.random() < _NO_FAULT
            else round(source.uniform(0.0, share * _RATES[each.name]), 4)
            for each in fields(Rates)
        }
    )


def _incidents(
    source: Random, workers: int, wish: Wish, patience: float, exchanges: int
) -> tuple[Incident, ...]:
    """Draw a few: most scenarios have one at most, some have many."""
    number = source.choice((0, 0, 1, 1, 1, 2, 3, 6))
    drawn = [_incident(source, workers, wish, patience, exchanges) for _ in range(number)]
    return tuple(sorted(drawn, key=lambda incident: incident.event))


def _incident(
    source: Random, workers: int, wish: Wish, patience: float, exchanges: int
) -> Incident:
    switches = wish.leaves + wish.spines if wish.leaves else 1
    worker, switch = f"w{source.randrange(workers)}", f"s{source.randrange(switches)}"
    lines = [f"w{number}" for number in range(workers)]
    lines += [f"l{leaf}s{spine}" for leaf in range(wish.leaves) for spine in range(wish.spines)]
    line = source.choice(lines) + source.choice(("", ".up", ".down"))
    kind, where, most = source.choice(
        (
            (IncidentKind.SILENCE, line, patience / 10),
            (IncidentKind.SILENCE, line, 0.05),
            (IncidentKind.STOP, worker, patience / 4),
            (IncidentKind.STOP, worker, _LONG),
            (IncidentKind.KILL, worker, 0.0),
            (IncidentKind.RESTART, switch, patience / 20),
            (IncidentKind.RESTART, switch, patience / 20),
            (IncidentKind.RESTART, "controller", patience / 10),
            (IncidentKind.RESTART, worker, patience / 20),
            (IncidentKind.PARTITION, switch, patience / 10),
            (IncidentKind.SPILL, switch, 0.0),
            (IncidentKind.SPILL, switch, 0.0),
            (IncidentKind.JUMP, worker, patience / 10),
        )
    )
    # Anywhere in a scenario of unknown length: the first events are as likely as all others.
    event = int(2 ** source.uniform(0.0, 9.0 + exchanges.bit_length()))
    return Incident(kind, where, event, round(most * source.random(), 3))
