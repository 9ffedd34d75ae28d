"""The cost of recovery when nothing is lost: time per round, and bytes."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from bench.errors import BenchError
from bench.line import Goal, ResultLine
from bench.loads.bare_worker import COMMAND as BARE_COMMAND
from bench.loads.exchange import WORKER_COMMAND, Exchanged, exchange
from bench.machine import installed_targets, lacks
from bench.measure import Samples, alternate, repeat
from bench.settings import Settings
from bench.testbeds.testbed import Served, Testbed
from bench.testbeds.wiretap import Wiretap
from bench.testbeds.workload import digits_plan, standard_plan
from switchgnn.host.wire.header import Kind
from switchgnn.topologies import Target

NAME = "recovery"
_TIME = 1.02
_ACK_PERCENT = 5.0
_WIDTH = 64
_ROUNDS = 10
# Single ratios vary by far more than the goal, so more of them are measured.
_PAIRS_PER_PAIR = 3
_TAPPED_ROUNDS = 3
_REPAIRS = ("features_resent", "probes", "recalls", "fetches")
missing = lacks


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure on the targets that are installed; bytes do not depend on the target."""
    for target in installed_targets():
        with Testbed(target, Served.whole(digits_plan())) as testbed:
            yield _time(settings, testbed, target)
    for name, plan in (("digits", digits_plan()), ("random", standard_plan())):
        with Testbed(Target.EMBEDDED, Served.whole(plan)) as testbed:
            yield _acknowledgements(settings, testbed, name)


def _time(settings: Settings, testbed: Testbed, target: Target) -> ResultLine:
    results: list[Exchanged] = []

    def measure(command: Sequence[str]) -> Callable[[], float]:
        def once() -> float:
            result = exchange(testbed, _ROUNDS, _WIDTH, command=command)
            results.append(result)
            return result.seconds * 1000

        return once

    samples = alternate(
        _PAIRS_PER_PAIR * settings.pairs,
        ("the product", measure(WORKER_COMMAND)),
        ("repairs nothing", measure(BARE_COMMAND)),
    )
    needless = sum(result.repairs[name] for result in results for name in _REPAIRS)
    failed = sum(result.repeated for result in results)
    return ResultLine(
        NAME,
        f"digits on {target.value}, nothing lost: time per round",
        "ms",
        *samples,
        goal=Goal(ratio_most=_TIME),
        note=f"{needless} packets asked for or sent again in {_ROUNDS * len(samples[0].values)} "
        f"rounds" + (f"; {failed} exchanges failed and were repeated" if failed else ""),
    )


def _acknowledgements(settings: Settings, testbed: Testbed, name: str) -> ResultLine:
    interfaces = [
        testbed.fabric.worker_link(w).partition(":")[2]
        for w in range(testbed.fabric.topology.workers)
    ]
    kinds: Counter[str] = Counter()
    with Wiretap(interfaces) as tap:

        def once() -> float:
            tap.bytes_by_kind()
            result = exchange(testbed, _TAPPED_ROUNDS, _WIDTH)
            seen = tap.bytes_by_kind()
            _check(seen, round(result.wire_bytes * _TAPPED_ROUNDS))
            kinds.update(seen)
            return 100 * seen[Kind.ACK.name] / seen.total()

        share = repeat(settings.pairs, "of all bytes", once)
    others = ", ".join(
        f"{kind} {size / kinds.total():.1%}" for kind, size in kinds.most_common() if kind != "ACK"
    )
    return ResultLine(
        NAME,
        f"{name}, nothing lost: bytes of acknowledgements",
        "%",
        Samples(share.label, share.values),
        goal=Goal(most=_ACK_PERCENT),
        note=f"others: {others}",
    )


def _check(seen: Counter[str], counted: int) -> None:
    if seen.total() != counted:
        raise BenchError(
            f"The tap has seen {seen.total():,} bytes, the interfaces have counted {counted:,}."
        )
