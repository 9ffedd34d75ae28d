"""Random scenarios.

The draws come from a seed, or from Hypothesis, which makes a scenario that fails smaller: it draws
0.0 instead of other shares, and the first of several values. So these are the simplest ones.
"""

from dataclasses import dataclass, fields, replace
from random import Random

from hypothesis import strategies as st

from switchgnn.planner.base.lanes import TOFINO_LANES
from tests.simulation.scenario import (
    Incident,
    IncidentKind,
    IncidentRates,
    Scenario,
    Tensor,
    TensorKind,
)

# Shares of scenarios: with rates; with blocks of many small groups; with a Byzantine worker.
_RATED, _GROUPS, _BYZANTINE = 0.85, 1 / 10, 1 / 15
# With compression, of these with caches; with all-reduces, of these with a large tensor, of the
# tensors that wait, and of those in which a switch restarts once more.
_COMPRESSED, _CACHED, _REDUCES, _LARGE, _WAITS, _RESTARTS = 1 / 4, 0.75, 1 / 4, 1 / 6, 0.5, 0.4
# The most of each rate in a direction, and the share of rates above 0.
_RATES = {"loss": 0.1, "duplicate": 0.1, "late": 0.05, "reorder": 0.05, "corrupt": 0.03}
_SOME = 0.6
# With more latency or less patience, a worker may give up through bad luck alone.
_PATIENCE, _ON_CABLES, _IMPATIENT = 20.0, 0.4, 0.2
# The number of graphs of each shape, few so that a soak rarely plans.
_SHAPES, _GRAPHS = ((20, 30), (60, 150), (120, 240), (240, 400)), 4
_SLOTS = (64, 8, 16, 32, 256)
# Wide lanes only with enough slots, as few slots make many blocks.
_LANES, _BANK_LANES, _LEAST_ROOM = (32, 32, 32, 32, 8, 64, 256), 32, 8
_POOLS = (1, 2, 1, 3, 2, 4)
_ELEMENTS = (1, 7, 255, 256, 257, 257, 1_000, 5_000, 20_000)
# More fragments than slots, and more than one group of floats.
_ALL_SLOTS = 140_000, 200_000
# The longest computation, in patiences.
_PAUSES = (0.001, 0.001, 0.05, 3.0)
# With a second job; of these, those whose first job is removed while it runs, those with bundles,
# and those with a switch that has time for all.
_SECOND, _REMOVED, _BUNDLES, _TIMELY = 1 / 12, 0.3, 0.25, 0.5
# With a vertex cut.
_CUT = 1 / 10
# Kinds of restarts of a switch, and their shares.
_KINDS = {IncidentKind.RESTART: 0.6, IncidentKind.TEAR: 0.4}


@dataclass(frozen=True)
class Wish:
    """The common settings of a soak's scenarios."""

    # leaves, spines: no leaves: stars
    leaves: int = 0
    spines: int = 0
    backend: str = "auto"
    byzantine: bool = False  # whether each has a Byzantine worker
    reduces: bool = False  # whether each has all-reduces
    # whether each has fewer bits or caches, but for those with a Byzantine worker
    compression: bool = False
    second: bool = False  # whether each has a second job
    cut: bool = False  # whether each has a vertex cut, but for those with bundles
    tofino: bool = False  # whether each is within what the Tofino program has


def scenarios(wish: Wish) -> st.SearchStrategy[Scenario]:
    return st.builds(draw_scenario, st.randoms(use_true_random=False), st.just(wish))


def draw_scenario(source: Random, wish: Wish) -> Scenario:
    scenario = _exchanges(source, wish)
    byzantine = wish.byzantine or _rarely(source, _BYZANTINE)
    number = source.choice((0, 0, 1, 1, 1, 2, 3, 6))
    incidents = [_incident(source, scenario) for _ in range(number)]
    if byzantine:
        incidents += _madness(source, scenario)
    elif wish.compression or _rarely(source, _COMPRESSED):
        scenario = _compressed(source, scenario)
    if wish.reduces or _rarely(source, _REDUCES):
        scenario = replace(scenario, reduces=_tensors(source, scenario.patience))
        if _rarely(source, _RESTARTS):
            # While all-reduces run: sums are lost that some workers have.
            kind = source.choice((IncidentKind.RESTART, IncidentKind.TEAR, IncidentKind.TEAR))
            event, gone = _event(source, 6.0, 12.0), scenario.patience / 20 * source.random()
            incidents.append(Incident(kind, _switch(source, scenario), event, round(gone, 3)))
    scenario = _with_pools(source, scenario)
    # Drawn last, so that seeds keep what else they draw.
    if wish.second or _rarely(source, _SECOND):
        scenario = _with_second(source, scenario)
        if _rarely(source, _REMOVED):
            event = _event(source, 5.0, 9.0 + scenario.exchanges.bit_length())
            gone = round(scenario.patience / 10 * source.random(), 3)
            incidents.append(Incident(IncidentKind.REMOVE, "controller", event, gone))
    if scenario.rows == 1 and (wish.cut or _rarely(source, _CUT)):
        leaves = f":{scenario.leaves}" if scenario.leaves else ""
        kind = source.choice((f"vertex-cut{leaves}", "vertex-cut-hdrf", "vertex-cut-metis"))
        second = scenario.second and replace(scenario.second, partition="vertex-cut")
        scenario = replace(scenario, partition=kind, second=second)
    incidents.sort(key=lambda incident: incident.event)
    scenario = replace(scenario, incidents=tuple(incidents))
    return _for_tofino(scenario) if wish.tofino else scenario


def _for_tofino(scenario: Scenario) -> Scenario:
    second = scenario.second and _for_tofino(scenario.second)
    lanes = min(scenario.lanes, TOFINO_LANES)
    whole = replace(scenario, bits=32, cache=False, epsilon=0.0)
    return replace(whole, lanes=lanes, rows=1, second=second)


def _with_second(source: Random, scenario: Scenario) -> Scenario:
    vertices, edges = source.choice(_SHAPES[:2])
    share = source.choice((0.0, 0.0, 1.0 if scenario.patience == _PATIENCE else _IMPATIENT))
    second = Scenario(
        seed=source.randrange(2**32),
        graph=f"random:{vertices}:{edges}:{source.randrange(_GRAPHS)}",
        workers=2 if scenario.leaves else source.choice((2, 2, 3)),
        slots=source.choice(_SLOTS),
        send=source.choice(("multicast", "cover")),
        width=source.choice((1, 32, 64)),
        rounds=source.choice((2, 4, 8)),
        window=source.choice((16, 2, 64)),
        patience=scenario.patience,
        up=_rates(source, share),
        down=_rates(source, share),
        reduces=source.choice(((), (Tensor(1_000), Tensor(257, TensorKind.FLOAT32)))),
    )
    second = _with_pools(source, second)
    if _rarely(source, _TIMELY):
        scenario = replace(scenario, turns=0, queue_rate=0.0)
    if _rarely(source, _BUNDLES):
        bundled = [replace(each, rows=2, lanes=32, width=32) for each in (scenario, second)]
        scenario, second = (replace(each, bits=32, cache=False) for each in bundled)
    return replace(scenario, second=second, second_first=source.random() < 0.5)


def _rarely(source: Random, share: float) -> bool:
    return source.random() > 1.0 - share


def _event(source: Random, least: float, most: float) -> int:
    """Draw a number of events, log-uniform, as the length of the scenario is unknown."""
    return int(2 ** source.uniform(least, most))


def _switch(source: Random, scenario: Scenario) -> str:
    return f"s{source.randrange(scenario.switches)}"


def _exchanges(source: Random, wish: Wish) -> Scenario:
    """Draw everything but Byzantine workers, incidents, compression and all-reduces."""
    least = max(2, wish.leaves)
    vertices, edges = source.choice(_SHAPES)
    patience = source.choice((_PATIENCE, _PATIENCE, 5.0))
    share = (_ON_CABLES if wish.leaves else 1.0) * (1.0 if patience == _PATIENCE else _IMPATIENT)
    if not _rarely(source, _RATED):
        share = 0.0
    scenario = Scenario(
        seed=source.randrange(2**32),
        graph=f"random:{vertices}:{edges}:{source.randrange(_GRAPHS)}",
        workers=source.randint(least, least + 3),
        leaves=wish.leaves,
        spines=wish.spines,
        slots=source.choice(_SLOTS),
        send=source.choice(("multicast", "cover")),
        directions=source.choice(("forward", "forward", "both")),
        width=source.choice((1, 32, 33, 64, 80)),
        rounds=source.choice((1, 2, 4, 8)),
        surges=source.choice((0.0, 0.0, 0.0, 0.3)),
        sessions=source.choice((1, 1, 1, 2, 3)),
        window=source.choice((16, 1, 2, 4, 8, 16, 64)),
        patience=patience,
        backend=wish.backend,
        queue_depth=source.choice((64, 16, 4)),
        queue_rate=source.choice((0.0, 0.0, 0.0, 200_000.0, 20_000.0)),
        turns=source.choice((0, 0, 1, 3)),
        latency=source.choice((50, 50, 5, 500, 5_000)),
        jitter=source.choice((0, 20, 200, 2_000)),
        up=_rates(source, share),
        down=_rates(source, share),
        cables=_rates(source, share if wish.leaves else 0.0),
    )
    return _with_many_groups(source, _with_other_lanes(source, scenario))


def _rates(source: Random, share: float) -> IncidentRates:
    if not share:
        return IncidentRates()
    return IncidentRates(
        **{
            each.name: round(source.uniform(0.0, share * _RATES[each.name]), 4)
            if _rarely(source, _SOME)
            else 0.0
            for each in fields(IncidentRates)
        }
    )


def _with_other_lanes(source: Random, scenario: Scenario) -> Scenario:
    lanes = source.choice(_LANES)
    if lanes == scenario.lanes or scenario.slots * _BANK_LANES < lanes * _LEAST_ROOM:
        return scenario
    width = source.choice((scenario.width, lanes, lanes + 1, 2 * lanes + 16))
    return replace(scenario, lanes=lanes, width=width)


def _with_pools(source: Random, scenario: Scenario) -> Scenario:
    """Return a scenario of one pool or several, if its slots suffice for a few sums in each."""
    pools = source.choice(_POOLS)
    room = scenario.slots * _BANK_LANES // max(_BANK_LANES, scenario.lanes)
    return scenario if room < _LEAST_ROOM * pools // 2 else replace(scenario, pools=pools)


def _with_many_groups(source: Random, scenario: Scenario) -> Scenario:
    """Return a scenario, sometimes with few blocks of many small groups, each half a window."""
    if not _rarely(source, _GROUPS):
        return scenario
    graph, rounds = f"random:240:1600:{source.randrange(_GRAPHS)}", min(scenario.rounds, 2)
    window = source.choice((2, 2, 4))
    return replace(scenario, graph=graph, slots=256, window=window, rounds=rounds, sessions=1)


def _incident(source: Random, scenario: Scenario) -> Incident:
    patience, workers = scenario.patience, range(scenario.workers)
    cables = [f"l{x}s{y}" for x in range(scenario.leaves) for y in range(scenario.spines)]
    worker, switch = f"w{source.choice(workers)}", _switch(source, scenario)
    line = source.choice([f"w{number}" for number in workers] + cables)
    line += source.choice(("", ".up", ".down"))
    kind, where, most = source.choice(
        (
            (IncidentKind.SILENCE, line, patience / 10),
            (IncidentKind.SILENCE, line, 0.05),
            (IncidentKind.STOP, worker, patience / 4),
            (IncidentKind.STOP, worker, 60.0),
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
    event = _event(source, 0.0, 9.0 + scenario.exchanges.bit_length())
    drawn = Incident(kind, where, event, round(most * source.random(), 3))
    if drawn.restarts_switch:
        (kind,) = source.choices(list(_KINDS), list(_KINDS.values()))
    return replace(drawn, kind=kind)


def _madness(source: Random, scenario: Scenario) -> list[Incident]:
    """Draw a Byzantine worker, whose process may be gone, or whose switch forgets its turn."""
    worker = f"w{source.randrange(scenario.workers)}"
    event = _event(source, 0.0, 9.0 + scenario.exchanges.bit_length())
    beside = source.choice((None, None, IncidentKind.KILL, IncidentKind.RESTART))
    # A restarted switch is found and installed again in about a second.
    longest = 3.0 if beside is IncidentKind.RESTART else 1.0
    byzantine = Incident(IncidentKind.BYZANTINE, worker, event, round(longest * source.random(), 3))
    if beside is IncidentKind.KILL:
        return [byzantine, Incident(beside, worker, event)]
    if beside is IncidentKind.RESTART:
        before, gone = int(event * source.uniform(0.5, 1.0)), round(source.random() / 4, 3)
        (kind,) = source.choices(list(_KINDS), list(_KINDS.values()))
        return [byzantine, Incident(kind, _switch(source, scenario), before, gone)]
    return [byzantine]


def _compressed(source: Random, scenario: Scenario) -> Scenario:
    return replace(
        scenario,
        bits=source.choice((32, 16, 8)),
        cache=_rarely(source, _CACHED),
        epsilon=source.choice((0.0, 0.01, 0.1, 0.5)),
    )


def _tensors(source: Random, patience: float) -> tuple[Tensor, ...]:
    number, pause = source.choice((1, 2, 4, 8)), source.choice(_PAUSES) * patience
    tensors = [
        Tensor(
            source.choice(_ELEMENTS),
            source.choice(list(TensorKind)),
            round(pause * source.random(), 3) if _rarely(source, _WAITS) else 0.0,
        )
        for _ in range(number)
    ]
    if _rarely(source, _LARGE):
        index = source.randrange(number)
        tensors[index] = replace(tensors[index], elements=source.randint(*_ALL_SLOTS))
    return tuple(tensors)
