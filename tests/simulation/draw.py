# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Random scenarios, each from its seed and the wish of a soak."""

from dataclasses import dataclass, fields, replace
from random import Random

from tests.simulation.scenario import (
    Difference,
    DifferenceKind,
    Incident,
    IncidentKind,
    IncidentRates,
    Scenario,
    Tensor,
    TensorKind,
)

# Shares of scenarios with a Byzantine or a different worker.
_MAD, _DIFFERENT = 1 / 15, 1 / 30
# The share of differences that are the controller's.
_CONTROLLER = 1 / 8
# What else happens: its process is killed, or a switch forgets whose turn it is.
_INSTALLED = 3.0
_ALONE, _GONE, _RESTARTED = "alone", "gone", "restarted"


def with_misfits(scenario: Scenario, *, always: bool = False) -> Scenario:
    """Return a scenario, sometimes with a Byzantine or different worker, by its seed."""
    source = Random(f"misfits/{scenario.seed}")
    chance = source.random() * (_MAD + _DIFFERENT if always else 1.0)
    if chance < _MAD:
        return _with_madness(scenario, source)
    return _with_a_difference(scenario, source) if chance < _MAD + _DIFFERENT else scenario


def _with_madness(scenario: Scenario, source: Random) -> Scenario:
    worker = f"w{source.randrange(scenario.workers)}"
    # Log-uniform, as the length of the scenario is unknown.
    event = int(2 ** source.uniform(0.0, 9.0 + scenario.exchanges.bit_length()))
    with_it = source.choice((_ALONE, _ALONE, _GONE, _RESTARTED))
    incidents = [*scenario.incidents]
    # A restarted switch is found and installed again in about a second.
    longest = _INSTALLED if with_it == _RESTARTED else 1.0
    seconds = round(longest * source.random(), 3)
    incidents.append(Incident(IncidentKind.MAD, worker, event, seconds))
    if with_it == _GONE:
        incidents.append(Incident(IncidentKind.KILL, worker, event))
    elif with_it == _RESTARTED:
        switch, before = f"s{source.randrange(scenario.switches)}", source.uniform(0.5, 1.0)
        gone = round(source.random() / 4, 3)
        incidents.append(Incident(IncidentKind.RESTART, switch, int(event * before), gone))
    return replace(scenario, incidents=_in_order(incidents))


def _with_a_difference(scenario: Scenario, source: Random) -> Scenario:
    """Add a difference without incidents, so that the right error is known."""
    if source.random() < _CONTROLLER:
        return replace(scenario, incidents=(), other_plan=True)
    worker, kind = source.randrange(scenario.workers), source.choice(list(DifferenceKind))
    difference = Difference(worker, kind, source.choice((1, 1, 2, -1)))
    if kind in (DifferenceKind.PLAN, DifferenceKind.DIGEST, DifferenceKind.WIDTH):
        difference = replace(difference, by=1)
    return replace(scenario, incidents=(), differences=(difference,))


# Kinds of restarts of a switch, and their shares.
_KINDS = {
    IncidentKind.RESTART: 0.5,
    IncidentKind.TEAR: 0.3,
    IncidentKind.PROGRAM: 0.1,
    IncidentKind.RELAPSE: 0.1,
}


def with_other_restarts(scenario: Scenario) -> Scenario:
    """Return a scenario in which switches restart in different ways, by its seed."""
    source = Random(f"restarts/{scenario.seed}")
    incidents = tuple(_otherwise(each, source) for each in scenario.incidents)
    return replace(scenario, incidents=incidents)


def _otherwise(incident: Incident, source: Random) -> Incident:
    if not incident.restarts_switch:
        return incident
    (kind,) = source.choices(list(_KINDS), list(_KINDS.values()))
    return replace(incident, kind=kind)


# The share of such scenarios.
_SHARE = 1 / 10
# Nearly every vertex has a neighbour on each other worker, and all sums are in few blocks.
_GRAPH, _GRAPHS, _SLOTS = "random:240:1600", 4, 256
# A group is half a window, and one waiting group does not hold up the others.
_WINDOWS = (2, 2, 4)
# Each of these blocks has as many frames as ten others.
_ROUNDS = 2


def with_many_groups(scenario: Scenario) -> Scenario:
    """Return a scenario, sometimes with blocks of many small groups, by its seed."""
    source = Random(f"groups/{scenario.seed}")
    if source.random() >= _SHARE:
        return scenario
    graph, window = f"{_GRAPH}:{source.randrange(_GRAPHS)}", source.choice(_WINDOWS)
    rounds = min(scenario.rounds, _ROUNDS)
    return replace(scenario, graph=graph, slots=_SLOTS, window=window, rounds=rounds, sessions=1)


_SENDS = ("multicast", "cover")
_DRAW_SLOTS = (8, 16, 32, 64, 256)
_WIDTHS = (1, 32, 33, 64, 80)
# The default most often; wide ones only with enough slots, as few slots make many blocks.
_LANES = (32, 32, 32, 32, 8, 64, 256)
_BANK_LANES, _LEAST_ROOM = 32, 8
_SURGES = (0.0, 0.0, 0.0, 0.3)
_DRAW_WINDOWS = (1, 2, 4, 8, 16, 16, 64)
# The shares of scenarios with fewer bits or caches, and of caches among them.
_COMPRESSED, _CACHED, _EPSILONS = 1 / 4, 0.75, (0.0, 0.01, 0.1, 0.5)
# The shares of scenarios with all-reduces, of these with a large one, and of those that wait.
_REDUCES, _LARGE, _WAITS = 1 / 4, 1 / 6, 0.5
_ELEMENTS = (1, 7, 255, 256, 257, 257, 1_000, 5_000, 20_000)
# The share with one more restart, while all-reduces run: sums are lost that some workers have.
_RESTARTS, _RESTART_KINDS = 0.4, (IncidentKind.TEAR, IncidentKind.TEAR, IncidentKind.RESTART)
# The exponents of the event.
_EVENTS = (6.0, 12.0)
# More fragments than slots, and more than one group of floats.
_ALL_SLOTS = 140_000, 200_000
# The longest computation, in patiences.
_PAUSES = (0.001, 0.001, 0.05, 3.0)
# The most of each rate in a direction, and the shares without a fault.
_RATES = {"loss": 0.1, "duplicate": 0.1, "late": 0.05, "reorder": 0.05, "corrupt": 0.03}
_NO_FAULT = 0.4
_NO_RATES = 0.15
# The number of graphs of each shape, few so that a soak rarely plans.
_DRAW_GRAPHS = 4
_SHAPES = ((20, 30), (60, 150), (120, 240), (240, 400))
_LONG = 60.0
# With more lines on the way or less patience, a worker may give up through bad luck alone.
_ON_CABLES, _PATIENCE, _IMPATIENT = 0.4, 20.0, 0.2


@dataclass(frozen=True)
class Wish:
    """The common settings of a soak's scenarios.

    Attributes:
        leaves, spines: no leaves: stars.
        misfits: whether each has a Byzantine worker, or one that differs from the others.
        reduces: whether each has all-reduces, but for those with a worker that differs.
        compression: whether each has fewer bits or caches, but for those with a misfit.
    """

    leaves: int = 0
    spines: int = 0
    backend: str = "auto"
    misfits: bool = False
    reduces: bool = False
    compression: bool = False


def draw_scenario(seed: int, wish: Wish) -> Scenario:
    """Return the scenario of a seed and a wish."""
    source = Random(f"scenario/{seed}")
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
        graph=f"random:{vertices}:{edges}:{source.randrange(_DRAW_GRAPHS)}",
        workers=workers,
        leaves=wish.leaves,
        spines=wish.spines,
        slots=source.choice(_DRAW_SLOTS),
        send=source.choice(_SENDS),
        directions=source.choice(("forward", "forward", "both")),
        width=source.choice(_WIDTHS),
        rounds=rounds,
        sessions=sessions,
        window=source.choice(_DRAW_WINDOWS),
        patience=patience,
        backend=wish.backend,
        queue_depth=source.choice((64, 16, 4)),
        queue_rate=source.choice((0.0, 0.0, 0.0, 200_000.0, 20_000.0)),
        turns=source.choice((0, 0, 1, 3)),
        latency=source.choice((5, 50, 50, 500, 5_000)),
        jitter=source.choice((0, 20, 200, 2_000)),
        up=IncidentRates() if calm else _rates(source, share),
        down=IncidentRates() if calm else _rates(source, share),
        cables=IncidentRates() if calm or not wish.leaves else _rates(source, share),
        incidents=_incidents(source, workers, wish, patience, rounds * sessions),
    )
    scenario = with_many_groups(_with_surges(_with_other_lanes(scenario)))
    scenario = with_other_restarts(with_misfits(scenario, always=wish.misfits))
    scenario = _with_compression(scenario, always=wish.compression)
    return _with_reduces(scenario, always=wish.reduces)


def _with_other_lanes(scenario: Scenario) -> Scenario:
    """Return a scenario, sometimes with frames of another width, by its seed."""
    source = Random(f"lanes/{scenario.seed}")
    lanes = source.choice(_LANES)
    if lanes == scenario.lanes or scenario.slots * _BANK_LANES < lanes * _LEAST_ROOM:
        return scenario
    width = source.choice((scenario.width, lanes, lanes + 1, 2 * lanes + 16))
    return replace(scenario, lanes=lanes, width=width)


def _with_surges(scenario: Scenario) -> Scenario:
    """Return a scenario, sometimes with features that outgrow earlier ones, by its seed."""
    source = Random(f"surges/{scenario.seed}")
    return replace(scenario, surges=source.choice(_SURGES))


def _with_compression(scenario: Scenario, *, always: bool) -> Scenario:
    """Return a scenario, sometimes with fewer bits or caches, by its seed."""
    source = Random(f"compression/{scenario.seed}")
    if source.random() >= _COMPRESSED and not always:
        return scenario
    drawn = replace(
        scenario,
        bits=source.choice((32, 16, 8)),
        cache=source.random() < _CACHED,
        epsilon=source.choice(_EPSILONS),
    )
    return _compressible(drawn)


def _compressible(scenario: Scenario) -> Scenario:
    """Return a scenario without compression if workers differ: no check knows what others send."""
    mad = any(incident.kind is IncidentKind.MAD for incident in scenario.incidents)
    if mad or scenario.differences or scenario.other_plan:
        return replace(scenario, bits=32, cache=False, epsilon=0.0)
    return scenario


def _with_reduces(scenario: Scenario, *, always: bool) -> Scenario:
    """Return a scenario, sometimes with all-reduces, by its seed."""
    source = Random(f"reduces/{scenario.seed}")
    if (source.random() >= _REDUCES and not always) or scenario.differences or scenario.other_plan:
        return scenario
    number, pause = source.choice((1, 2, 4, 8)), source.choice(_PAUSES) * scenario.patience
    tensors = [
        Tensor(
            source.choice(_ELEMENTS),
            source.choice(list(TensorKind)),
            round(pause * source.random(), 3) if source.random() < _WAITS else 0.0,
        )
        for _ in range(number)
    ]
    if source.random() < _LARGE:
        place = source.randrange(number)
        tensors[place] = replace(tensors[place], elements=source.randint(*_ALL_SLOTS))
    incidents = [*scenario.incidents]
    if source.random() < _RESTARTS:
        kind, switch = source.choice(_RESTART_KINDS), f"s{source.randrange(scenario.switches)}"
        event, gone = int(2 ** source.uniform(*_EVENTS)), scenario.patience / 20 * source.random()
        incidents.append(Incident(kind, switch, event, round(gone, 3)))
    return replace(scenario, reduces=tuple(tensors), incidents=_in_order(incidents))


def _rates(source: Random, share: float) -> IncidentRates:
    return IncidentRates(
        **{
            each.name: 0.0
            if source.random() < _NO_FAULT
            else round(source.uniform(0.0, share * _RATES[each.name]), 4)
            for each in fields(IncidentRates)
        }
    )


def _incidents(
    source: Random, workers: int, wish: Wish, patience: float, exchanges: int
) -> tuple[Incident, ...]:
    """Draw a few: most scenarios have one at most, some have many."""
    number = source.choice((0, 0, 1, 1, 1, 2, 3, 6))
    drawn = [_incident(source, workers, wish, patience, exchanges) for _ in range(number)]
    return _in_order(drawn)


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
    # Log-uniform, as the length of the scenario is unknown.
    event = int(2 ** source.uniform(0.0, 9.0 + exchanges.bit_length()))
    return Incident(kind, where, event, round(most * source.random(), 3))


def _in_order(incidents: list[Incident]) -> tuple[Incident, ...]:
    return tuple(sorted(incidents, key=lambda incident: incident.event))
