"""`python -m tests.simulation`, from the checkout: exchanges in virtual time with random faults."""

import argparse
import random
import sys
from collections.abc import Iterable, Iterator

from switchgnn.base.errors import SwitchGNNError
from switchgnn.capture.lines import flag_names
from switchgnn.capture.packet import kind_name
from switchgnn.host.wire.header import HEADER_AT, HEADER_BYTES, fragment_number, parse_header
from tests.simulation.draw import Wish
from tests.simulation.scenario import read_scenario, scenario_text
from tests.simulation.soak import Soak

_HOLDS, _FAILED = 0, 2
# Hypothesis keeps what it has drawn, so a long soak has several searches.
_EXAMPLES = 100
_CROSSING_WORDS = 3


def main(words: list[str] | None = None) -> int:
    """Run scenarios; return 0 if all checks held, 2 otherwise."""
    parser = argparse.ArgumentParser("python -m tests.simulation", description=__doc__)
    parser.add_argument("--scenario", help="run this scenario only: a JSON file, or JSON")
    parser.add_argument("--trace", action="store_true", help="print the events of the scenario")
    parser.add_argument("--examples", type=int, default=_EXAMPLES, help="draw this many scenarios")
    parser.add_argument("--seed", type=int, help="all draws follow from it")
    parser.add_argument("--leaves", type=int, default=0)
    parser.add_argument("--spines", type=int, default=0)
    parser.add_argument("--tofino", action="store_true", help="run the Tofino program")
    asked = parser.parse_args(words)
    try:
        return _replay(asked) if asked.scenario else _soak(asked)
    except SwitchGNNError as error:
        sys.stderr.write(f"Error: {error}\n")
        return _FAILED


def _replay(asked: argparse.Namespace) -> int:
    outcome = Soak(Wish(tofino=asked.tofino)).run(
        read_scenario(asked.scenario), keeps_trace=asked.trace
    )
    for line in table_of(outcome.trace) if asked.trace else ():
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{outcome.summary}\n")
    for violation in outcome.violations:
        sys.stdout.write(f"{violation.name}: {violation.what}\n")
    return _FAILED if outcome.violations else _HOLDS


def _soak(asked: argparse.Namespace) -> int:
    soak = Soak(Wish(asked.leaves, asked.spines, tofino=asked.tofino))
    seed = random.Random().randrange(2**32) if asked.seed is None else asked.seed
    for begin in range(0, asked.examples, _EXAMPLES):
        failing = soak.smallest_failure(seed + begin, min(_EXAMPLES, asked.examples - begin))
        if failing is not None:
            violation = soak.run(failing).violations[0]
            sys.stdout.write(f"{violation.name}: {violation.what}\n{scenario_text(failing)}")
            return _FAILED
    sys.stdout.write(f"All checks hold in {asked.examples} scenarios from seed {seed}.\n")
    return _HOLDS


def table_of(trace: Iterable[str]) -> Iterator[str]:
    """Yield the events of a trace: milliseconds, where, and what."""
    begin = None
    for line in trace:
        time, where, event = line.split(" ", 2)
        begin = int(time) if begin is None else begin
        words = event.split(" ")
        if where.endswith((".up", ".down")) and len(words) == _CROSSING_WORDS:
            fate, arrives, headers = words
            event = f"{_named(bytes.fromhex(headers))}, {fate}"
            event += f" at {_milliseconds(int(arrives) - begin)}" if int(arrives) else ""
        yield f"{_milliseconds(int(time) - begin):>12}  {where:<10}  {event}"


def _milliseconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:,.3f}"


def _named(headers: bytes) -> str:
    if len(headers) < HEADER_BYTES:
        return "another protocol"
    header = parse_header(bytes(HEADER_AT) + headers).header
    fragment = fragment_number(header.fragment)
    unit = f"{header.session}.{header.round}.{header.block_id}.{fragment}"
    more = f"src {header.src_id} dst {header.dst_id} count {header.count}"
    return " ".join((kind_name(header).upper(), unit, more, *flag_names(header)))


if __name__ == "__main__":
    sys.exit(main())
