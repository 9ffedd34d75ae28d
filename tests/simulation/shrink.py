# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The search for the smallest scenario that fails in the same way."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from switchgnn.base.errors import SwitchGNNError
from tests.simulation.run import ScenarioOutcome
from tests.simulation.scenario import Fault, FaultKind, Incident, IncidentRates, Scenario

Item = TypeVar("Item")


def fewest(
    items: tuple[Item, ...], suffices: Callable[[tuple[Item, ...]], bool]
) -> tuple[Item, ...]:
    """Remove half of the items, a quarter, and so on to single ones, where the rest suffices."""
    size = len(items)
    while size:
        place = 0
        while place < len(items):
            rest = items[:place] + items[place + size :]
            if suffices(rest):
                items = rest
            else:
                place += size
        size //= 2
    return items


Reduction = Callable[[Scenario], Iterator[Scenario]]

_GRAPH = re.compile(r"random:(\d+):(\d+):(\d+)")
_PLACE = re.compile(
    r"(?:w(?P<worker>\d+)|s(?P<switch>\d+)|l(?P<leaf>\d+)s(?P<spine>\d+))(?:\.\w+)?"
)
# Where the default is not the simplest value; other settings go back to their defaults.
_LEAST = {"jitter": 0}
_NO_SETTINGS = {
    *("seed", "width", "graph", "workers", "leaves", "spines", "rounds", "sessions", "backend"),
    *("incidents", "faults", "differences"),
}
_SHORT = 1_000_000
_TINY = ((8, 12), (16, 36), (32, 80))


def tiny(scenario: Scenario) -> Iterator[Scenario]:
    """Yield very small ones first, as they run fast."""
    found = _GRAPH.fullmatch(scenario.graph)
    vertices = int(found.group(1)) if found else _TINY[-1][0] + 1
    workers = max(2, scenario.leaves)
    for few, rare in _TINY:
        if max(few, workers) < vertices:
            graph = f"random:{max(few, workers)}:{rare}:0"
            smaller = replace(scenario, graph=graph, workers=workers, rounds=1, sessions=1)
            yield _without_the_gone(smaller)


def less_to_exchange(scenario: Scenario) -> Iterator[Scenario]:
    """Yield those with fewer sessions, fewer rounds and all-reduces in each, and fewer columns."""
    for sessions in _fewer(scenario.sessions, 1):
        yield replace(scenario, sessions=sessions)
    for rounds in _fewer(scenario.rounds, 1):
        yield replace(scenario, rounds=rounds)
    for width in (1, scenario.lanes, scenario.lanes + 1):
        if width < scenario.width:
            yield replace(scenario, width=width)
    for place in range(len(scenario.reduces)):
        others = scenario.reduces[:place] + scenario.reduces[place + 1 :]
        yield replace(scenario, reduces=others)


def fewer_parts(scenario: Scenario) -> Iterator[Scenario]:
    """Yield those with fewer switches, and with fewer workers."""
    if scenario.leaves:
        yield _without_the_gone(replace(scenario, leaves=0, spines=0, cables=IncidentRates()))
        for leaves in _fewer(scenario.leaves, 1):
            yield _without_the_gone(replace(scenario, leaves=leaves))
        for spines in _fewer(scenario.spines, 1):
            yield _without_the_gone(replace(scenario, spines=spines))
    for workers in _fewer(scenario.workers, max(2, scenario.leaves)):
        yield _without_the_gone(replace(scenario, workers=workers))


def smaller_graph(scenario: Scenario) -> Iterator[Scenario]:
    """Yield those with fewer vertices and edges, if the graph is a random one."""
    found = _GRAPH.fullmatch(scenario.graph)
    if found is None:
        return
    vertices, edges, seed = map(int, found.groups())
    least = max(2, scenario.workers)
    sizes = [(vertices // 2, edges // 2), (vertices // 2, edges), (vertices, edges // 2)]
    sizes += [(3 * vertices // 4, 3 * edges // 4), (vertices - 1, edges), (vertices, edges - 1)]
    for few, rare in sizes:
        if few >= least and rare >= 1 and (few, rare) != (vertices, edges):
            yield replace(scenario, graph=f"random:{few}:{rare}:{seed}")
    if seed:
        yield replace(scenario, graph=f"random:{vertices}:{edges}:0")


def lower_rates(scenario: Scenario) -> Iterator[Scenario]:
    """Yield those without one of their rates, or without all rates of a direction."""
    for each in fields(scenario):
        rates = getattr(scenario, each.name)
        if not isinstance(rates, IncidentRates) or rates == IncidentRates():
            continue
        quieter = [IncidentRates()]
        names = [rate.name for rate in fields(rates) if getattr(rates, rate.name)]
        quieter += [replace(rates, **{name: 0.0}) for name in names]
        for some in quieter:
            changed: dict[str, Any] = {each.name: some}
            yield replace(scenario, **changed)


def plain_settings(scenario: Scenario) -> Iterator[Scenario]:
    """Yield those with one setting back at its default."""
    for each in fields(scenario):
        value = getattr(scenario, each.name)
        if each.name in _NO_SETTINGS or isinstance(value, IncidentRates):
            continue
        plain: Any = _LEAST.get(each.name, each.default)
        if value != plain:
            yield replace(scenario, **{each.name: plain})


def shorter_incidents(scenario: Scenario) -> Iterator[Scenario]:
    """Yield those of which one incident takes less time, or comes sooner."""
    for place, incident in enumerate(scenario.incidents):
        for seconds in dict.fromkeys((0.0, round(incident.seconds / 2, 3))):
            if seconds < incident.seconds:
                yield _with_incident(scenario, place, replace(incident, seconds=seconds))
        if incident.event:
            sooner = replace(incident, event=incident.event // 2)
            yield _with_incident(scenario, place, sooner)


def fewer_differences(scenario: Scenario) -> Iterator[Scenario]:
    """Yield those with one difference fewer, or a smaller one."""
    for place, difference in enumerate(scenario.differences):
        others = scenario.differences[:place] + scenario.differences[place + 1 :]
        yield replace(scenario, differences=others)
        if abs(difference.by) > 1:
            nearer = replace(difference, by=difference.by // abs(difference.by))
            yield replace(scenario, differences=(*others, nearer))


def plainer_faults(scenario: Scenario) -> Iterator[Scenario]:
    """Yield those with one simpler fault."""
    for place, fault in enumerate(scenario.faults):
        for plainer in _plainer(fault):
            yield replace(
                scenario, faults=(*scenario.faults[:place], plainer, *scenario.faults[place + 1 :])
            )


# The boldest first, as small scenarios run fast.
REDUCTIONS: tuple[Reduction, ...] = (
    tiny,
    less_to_exchange,
    fewer_parts,
    smaller_graph,
    lower_rates,
    plain_settings,
    shorter_incidents,
    fewer_differences,
    plainer_faults,
)


def sooner(scenario: Scenario) -> Scenario:
    """Return a scenario with earlier incidents, as all events of a smaller one are earlier."""
    halved = (replace(each, event=each.event // 2) for each in scenario.incidents)
    return replace(scenario, incidents=tuple(halved))


def _fewer(number: int, least: int) -> Iterator[int]:
    for fewer in dict.fromkeys((least, number // 2, number - 1)):
        if least <= fewer < number:
            yield fewer


def _plainer(fault: Fault) -> Iterator[Fault]:
    if fault.kind is FaultKind.CORRUPT:
        yield Fault(FaultKind.LOSS, fault.line, fault.frame)
        for place in range(len(fault.bits) if len(fault.bits) > 1 else 0):
            yield replace(fault, bits=fault.bits[:place] + fault.bits[place + 1 :])
    for delay in (_SHORT, fault.delay // 2):
        if _SHORT <= delay < fault.delay:
            yield replace(fault, delay=delay)


def _with_incident(scenario: Scenario, place: int, incident: Incident) -> Scenario:
    others = scenario.incidents[:place] + scenario.incidents[place + 1 :]
    in_order = sorted((*others, incident), key=lambda each: each.event)
    return replace(scenario, incidents=tuple(in_order))


def _without_the_gone(scenario: Scenario) -> Scenario:
    """Return a scenario without incidents and faults of parts that it does not have."""
    return replace(
        scenario,
        incidents=tuple(each for each in scenario.incidents if _is_there(each.where, scenario)),
        differences=tuple(d for d in scenario.differences if d.worker < scenario.workers),
        faults=tuple(each for each in scenario.faults if _is_there(each.line, scenario)),
    )


def _is_there(where: str, scenario: Scenario) -> bool:
    found = _PLACE.fullmatch(where)
    if found is None:
        return True
    numbers = {
        "worker": scenario.workers,
        "switch": scenario.switches,
        "leaf": scenario.leaves,
        "spine": scenario.spines,
    }
    return all(int(told) < numbers[part] for part, told in found.groupdict().items() if told)


# Where faults are drawn, a smaller scenario has others: it is tried with further seeds, up to this
# number and as many frames together, or as many as the known one has.
_MOST_CHANCES, _FRAMES = 40, 1_500


@dataclass(frozen=True)
class Budget:
    """The most runs of a search; before each, `goes_on` returns whether it goes on."""

    runs: int
    goes_on: Callable[[], bool]


@dataclass(frozen=True)
class Shrunk:
    """The smallest scenario that fails, and its outcome.

    Attributes:
        name: the violated invariant.
        runs: of the search.
        least: whether no reduction is left; False: the budget was used up.
    """

    scenario: Scenario
    outcome: ScenarioOutcome
    name: str
    runs: int
    least: bool


def shrink(
    scenario: Scenario, name: str, run: Callable[[Scenario], ScenarioOutcome], budget: Budget
) -> Shrunk | None:
    """Reduce a scenario that fails as far as possible."""
    search = _Search(name, run, budget)
    least = False
    try:
        if not search.fails(scenario):
            return None
        while not least:
            before = search.least
            _sweep(search)
            least = search.least == before
    except _OverError:
        pass
    if search.least is None or search.outcome is None:
        return None
    return Shrunk(search.least, search.outcome, name, search.runs, least)


class _OverError(Exception):
    """The budget is used up."""


class _Search:
    """Runs scenarios, each once, and keeps the last one that failed, with its outcome."""

    def __init__(
        self, name: str, run: Callable[[Scenario], ScenarioOutcome], budget: Budget
    ) -> None:
        self.least: Scenario | None = None
        self.outcome: ScenarioOutcome | None = None
        self.runs = self.frames = 0
        self._name = name
        self._run = run
        self._budget = budget
        self._known: dict[Scenario, bool] = {}

    def fails(self, scenario: Scenario) -> bool:
        """Return whether a scenario fails in the same way."""
        if scenario not in self._known:
            if self.runs >= self._budget.runs or not self._budget.goes_on():
                raise _OverError
            self._known[scenario] = self._try(scenario)
        return self._known[scenario]

    def _try(self, scenario: Scenario) -> bool:
        self.runs += 1
        try:
            outcome = self._run(scenario)
        except SwitchGNNError:
            # Such as a graph with fewer vertices than workers.
            return False
        self.frames += outcome.frames
        if all(violation.name != self._name for violation in outcome.violations):
            return False
        self.least, self.outcome = scenario, outcome
        return True


def _sweep(search: _Search) -> None:
    """Try all reductions once, then replace rates by single faults."""
    least = _fewest_incidents(search)
    for reduction in REDUCTIONS:
        least = _reduce(search, least, reduction)
    if search.outcome is not None and _has_rates(least):
        told = _without_rates(least, search.outcome)
        if search.fails(told):
            least = told
    fewest(least.faults, lambda faults: search.fails(replace(least, faults=faults)))


def _fewest_incidents(search: _Search) -> Scenario:
    least = search.least
    if least is None:
        raise _OverError
    incidents = fewest(least.incidents, lambda rest: search.fails(replace(least, incidents=rest)))
    return replace(least, incidents=incidents)


def _reduce(search: _Search, scenario: Scenario, reduction: Reduction) -> Scenario:
    """Take the first smaller scenario that fails, until none does."""
    found: Scenario | None = scenario
    while found is not None:
        scenario = found
        drawn = _has_rates(scenario) and reduction is not lower_rates
        tries = (_try(search, scenario, smaller, drawn=drawn) for smaller in reduction(scenario))
        found = next((some for some in tries if some is not None), None)
    return scenario


def _try(search: _Search, scenario: Scenario, smaller: Scenario, *, drawn: bool) -> Scenario | None:
    """Return a smaller scenario, or one much like it, if it fails."""
    alike = [smaller]
    if smaller.incidents and smaller.incidents == scenario.incidents:
        alike.append(sooner(smaller))
    most = search.frames + max(_FRAMES, search.outcome.frames if search.outcome else 0)
    for chance in range(_MOST_CHANCES if drawn else 1):
        for one in alike:
            with_seed = replace(one, seed=chance - 1) if chance else one
            if search.fails(with_seed):
                return with_seed
        if search.frames >= most:
            break
    return None


def _has_rates(scenario: Scenario) -> bool:
    return next(lower_rates(scenario), None) is not None


def _without_rates(scenario: Scenario, outcome: ScenarioOutcome) -> Scenario:
    """Return a scenario with the drawn faults as single ones."""
    names = (each.name for each in fields(scenario))
    rates = (name for name in names if isinstance(getattr(scenario, name), IncidentRates))
    silent: dict[str, Any] = dict.fromkeys(rates, IncidentRates())
    return replace(scenario, **silent, faults=outcome.each_fault)
