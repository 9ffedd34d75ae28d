# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A soak of exchanges in virtual time, each repeatable from its seed."""

import gc
import json
import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.interruptible import Interruption
from switchgnn.capture.lines import flag_names
from switchgnn.capture.packet import kind_name
from switchgnn.commands.shared.console import counted, plain_console
from switchgnn.host.wire.header import HEADER_AT, HEADER_BYTES, fragment_number, parse_header
from switchgnn.topologies import Backend
from tests.simulation.draw import Wish
from tests.simulation.scenario import Scenario, scenario_said, scenario_text
from tests.simulation.shrink import Budget, Shrunk, shrink
from tests.simulation.soak import Soak, SoakFailure, SoakSums

# Single faults of a scenario with thousands of them take about as many.
_MOST_RUNS = 2_000


@dataclass(frozen=True)
class FailureFiles:
    """What was written of a failure.

    Attributes:
        scenario, table: the files.
        runs: how many runs it took to make the scenario small.
        least: whether nothing more can be taken away from it; otherwise the time was over.
        summary: what is left, in words.
    """

    scenario: str
    table: str
    runs: int
    least: bool
    summary: str

    def sentence(self) -> str:
        """Return what a user wants to know."""
        how = "nothing more can be taken away" if self.least else "the time for more was over"
        return f"{self.summary}, after {self.runs:,} runs; {how}"


def make_folder(folder: Path) -> None:
    """Make the folder for files, if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SwitchGNNError(
            f"{folder} cannot be made ({error.strerror}): give --out another folder."
        ) from error


def write_failure(
    soak: Soak, scenario: Scenario, name: str, folder: Path, goes_on: Callable[[], bool]
) -> FailureFiles | None:
    """Make a scenario that fails small, and write it and the table of its events."""
    shrunk = shrink(scenario, name, soak.run, Budget(_MOST_RUNS, goes_on))
    if shrunk is None:
        return None
    trace = soak.run(shrunk.scenario, keeps_trace=True).trace
    stem = folder / f"seed-{scenario.seed}"
    return FailureFiles(
        scenario=_write(stem.with_suffix(".json"), scenario_text(shrunk.scenario)),
        table=_write(stem.with_suffix(".txt"), table_of(trace, name)),
        runs=shrunk.runs,
        least=shrunk.least,
        summary=_summary(shrunk),
    )


_CROSSING_WORDS = 3


def table_of(trace: Iterable[str], name: str) -> str:
    """Return the events of a trace until the invariant `name` is violated, a line each.

    A frame has its kind; session, round, block and fragment; and further fields of its header.
    """
    return "".join(f"{line}\n" for line in _rows(trace, name))


def _rows(trace: Iterable[str], name: str) -> Iterator[str]:
    yield f"{'ms':>12}  where"
    begin = None
    for line in trace:
        time, where, event = line.split(" ", 2)
        begin = int(time) if begin is None else begin
        words = event.split(" ")
        if where.endswith((".up", ".down")) and len(words) == _CROSSING_WORDS:
            fate, arrives, headers = words
            event = f"{_named(bytes.fromhex(headers))}, {fate}"
            event += f" at {_ms(int(arrives) - begin)}" if int(arrives) else ""
        yield f"{_ms(int(time) - begin):>12}  {where:<10}  {event}"
        if where == "check" and event.startswith(f"{name}:"):
            return


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:,.3f}"


def _named(headers: bytes) -> str:
    if len(headers) < HEADER_BYTES:
        return "another protocol"
    header = parse_header(bytes(HEADER_AT) + headers).header
    fragment = fragment_number(header.fragment)
    place = f"{header.session}.{header.round}.{header.block_id}.{fragment}"
    more = f"src {header.src_id} dst {header.dst_id} count {header.count}"
    return " ".join((kind_name(header).upper(), place, more, *flag_names(header)))


def _write(path: Path, text: str) -> str:
    # Nobody shall take half a file for a whole one.
    fresh = path.with_name(f"{path.name}.part")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise SwitchGNNError(
            f"{path} cannot be written ({error.strerror}): give --out another folder."
        ) from error
    return str(path)


def _summary(shrunk: Shrunk) -> str:
    scenario = shrunk.scenario
    numbers = {
        "worker": scenario.workers,
        "exchange": scenario.exchanges,
        "frame": shrunk.outcome.frames,
        "fault": sum(shrunk.outcome.faults.values()),
    }
    return ", ".join(f"{n:,} {name}{'s' * (n != 1)}" for name, n in numbers.items())


# For each failure that is made small.
_SECONDS = 120.0
# Objects that may come before the collector looks for rings among them.
_OBJECTS = 50_000


@dataclass(frozen=True)
class SimulatedOptions:
    """What to simulate.

    Attributes:
        seed: of the first scenario; the next one has the next seed.
        exchanges: end after this many; None: when the time is over.
        minutes: begin no scenario after so long.
        leaves_and_spines: their numbers; None: stars.
        backend: what switches run the program as; None: native code where a compiler is there.
        scenario: the only scenario as JSON, or its file, in place of drawn ones; None: they are
            drawn.
        only: whether the scenario of the seed is the only one.
        out: where the smallest scenarios that fail go, and their events; None: nowhere.
    """

    seed: int
    exchanges: int | None
    minutes: float
    leaves_and_spines: tuple[int, int] | None
    backend: Backend | None
    scenario: str | None
    only: bool
    out: Path | None = None


def soak_simulated(options: SimulatedOptions, *, as_json: bool) -> int:
    """Soak, print what came of it, and return the exit code."""
    leaves, spines = options.leaves_and_spines or (0, 0)
    soak = Soak(Wish(leaves, spines, (options.backend or Backend.AUTO).value))
    told = scenario_said(options.scenario) if options.scenario else None
    scenarios = iter([told]) if told else soak.scenarios(options.seed)
    if options.out:
        make_folder(options.out)
    _collect_seldom()
    started = time.monotonic()
    with Interruption() as interruption:
        interruption.later()

        def goes_on(sums: SoakSums) -> bool:
            if options.only and (sums.scenarios or sums.failures):
                return False
            if options.exchanges is not None and sums.exchanges >= options.exchanges:
                return False
            over = options.exchanges is None and not options.only
            over = over and time.monotonic() - started >= 60 * options.minutes
            return not interruption.came and not (over and sums.scenarios)

        sums = soak.many(scenarios, partial(_command, options), goes_on)
        seconds = time.monotonic() - started
        failures = [_Failure(failure) for failure in sums.failures]
        for each in failures if options.out else ():
            each.files = _files(soak, each.found, options.out, interruption)
    if as_json:
        found = [each.to_dict() for each in failures]
        numbers = {**sums.to_dict(), "failures": found, "seconds": round(seconds, 3)}
        seed = told.seed if told else options.seed
        typer.echo(json.dumps({"seed": seed, **numbers}))
    else:
        where = "as told" if told else f"from seed {options.seed}"
        _print(plain_console(), where, sums, failures, seconds)
    return sums.exit_code


def _collect_seldom() -> None:
    """Let the collector look at less, and less often: what is imported stays to the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS)


@dataclass
class _Failure:
    """A failure, and what was written of it."""

    found: SoakFailure
    files: FailureFiles | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.found.to_dict(),
            "shrink": self.shrinking,
            "files": asdict(self.files) if self.files else None,
        }

    @property
    def shrinking(self) -> str:
        """The command that makes it small; empty where the scenario could not be."""
        return f"{self.found.command} --out FOLDER" if self.found.name else ""

    def lines(self) -> list[str]:
        found = self.found
        lines = [f"Seed {found.seed}: {found.name or 'it could not be done'}: {found.what}"]
        lines.append(f"  replay it: {found.command}")
        if self.files:
            lines.append(f"  made small: {self.files.sentence()}")
            lines.append(
                f"  replay that: python -m tests.simulation --scenario {self.files.scenario}"
            )
            lines.append(f"  its events are in {self.files.table}")
        elif found.name:
            lines.append(f"  make it small: {self.shrinking}")
        return lines


def _files(
    soak: Soak, found: SoakFailure, folder: Path | None, interruption: Interruption
) -> FailureFiles | None:
    if folder is None or not found.name:
        return None
    end = time.monotonic() + _SECONDS
    return write_failure(
        soak,
        found.scenario,
        found.name,
        folder,
        lambda: not interruption.came and time.monotonic() < end,
    )


def _command(options: SimulatedOptions, scenario: Scenario) -> str:
    """Return the command that replays a scenario."""
    begin = "python -m tests.simulation"
    if options.scenario:
        return f"{begin} --scenario {shlex.quote(options.scenario)}"
    where = ""
    if options.leaves_and_spines:
        leaves, spines = options.leaves_and_spines
        where = f" --topology leaf-spine --leaves {leaves} --spines {spines}"
    backend = f" --backend {options.backend.value}" if options.backend else ""
    return f"{begin} --seed {scenario.seed}{where}{backend}"


def _print(
    console: Console, where: str, sums: SoakSums, failures: list[_Failure], seconds: float
) -> None:
    speed = 60 * sums.exchanges / seconds if seconds else 0.0
    lines = [
        f"{sums.exchanges:,} exchanges in {sums.scenarios:,} "
        f"scenario{'s' * (sums.scenarios != 1)} {where}: "
        f"{sums.frames:,} frames, {sums.virtual_seconds:,.0f} virtual seconds in {seconds:.0f} s "
        f"({speed:,.0f} exchanges per minute)",
        f"All-reduces beside them: {sums.reduces:,}.",
        counted("What went wrong on purpose", dict(sums.faults)),
        f"Workers that gave up, as they had to: {sums.gave_up:,}.",
        f"SHA-256 of all traces: {sums.trace_digest}",
    ]
    for failure in failures:
        lines += failure.lines()
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)
    if sums.scenarios and not sums.failures:
        console.print(Text("Nothing was otherwise than it must be.", "bold green"), soft_wrap=True)
