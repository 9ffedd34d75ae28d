"""Polls the switches of a run, and the workers of a network file, each in its own thread."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

from finsy.proto import p4r

from switchgnn.base.metrics import MetricsError, ask_metrics, values_by_name
from switchgnn.base.network_file import DescribedNetwork, SwitchTarget
from switchgnn.controller.errors import ControllerError
from switchgnn.controller.metrics import SwitchMetrics
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.target import client_of
from switchgnn.controller.watch import WATCH_DEADLINE
from switchgnn.host.metrics import told_values
from switchgnn.live.board import EVERY, Board

_PREFIX = "switchgnn_"
_PARTING_SECONDS = 2.0
# Slots of a sample: the switch copies each cell separately, between two turns of forwarding.
_MOST_CELLS = 256
# The low bits of a state are a count, the others the tag of a block; see banks.p4.
_COUNT_BITS = 16


class PolledSwitch:
    """Reads a switch with a read-only client, opened on use, and again after a restart.

    `bank_slots`: the most slots of a bank that the switch's plan uses; 0 if unknown, or if the
    switch does not report used slots.
    """

    def __init__(self, client: P4RuntimeClient, bank_slots: int = 0) -> None:
        self._client = client
        self._bank_slots = bank_slots
        self._metrics = SwitchMetrics([client], interval=0.0, with_tables=False)

    def values(self) -> dict[str, float]:
        """Return its metrics for Prometheus as `values_by_name`, and its slots if it says.

        Of `slots` that the plan may use, `slots_read` were read, evenly spread; `slots_in_use` of
        these have contributions to the newest block among them, complete or not.
        """
        found = values_by_name(self._metrics.collect(), _PREFIX)
        if "session" in found and self._bank_slots:
            with suppress(ControllerError):
                found |= read_slots(self._client, self._bank_slots)
        return found

    def close(self) -> None:
        """Disconnect."""
        with suppress(ControllerError):
            self._metrics.close()


def read_slots(client: P4RuntimeClient, slots_per_bank: int) -> dict[str, float]:
    """Read a sample of the slots that a plan may use; see `PolledSwitch.values`."""
    banks = [
        array
        for name, array in sorted(client.get_layout().registers.items())
        if name.startswith("bank") and name.endswith(".state")
    ]
    if not banks:
        return {}
    each = min(slots_per_bank, *(bank.size for bank in banks))
    step = -(-each * len(banks) // _MOST_CELLS)
    entities = [
        p4r.Entity(
            register_entry=p4r.RegisterEntry(register_id=bank.id, index=p4r.Index(index=index))
        )
        for bank in banks
        for index in range(0, each, step)
    ]
    answers = client.read(entities)
    if len(answers) != len(entities):
        return {}
    states = [int.from_bytes(each.register_entry.data.bitstring, "big") for each in answers]
    newest = max(state >> _COUNT_BITS for state in states)
    used = sum(newest > 0 and state >> _COUNT_BITS == newest for state in states)
    return {"slots_in_use": used, "slots_read": len(states), "slots": each * len(banks)}


@contextmanager
def polling_switches(
    switches: Sequence[PolledSwitch], hear: Callable[[int, dict[str, float]], None]
) -> Iterator[None]:
    """Report the metrics of switches twice a second during the block, and once after it."""

    def ask(number: int, switch: PolledSwitch) -> None:
        hear(number, switch.values())

    with ExitStack() as stack:
        for switch in switches:
            stack.callback(switch.close)
        # gRPC calls must end before the interpreter does; each has a deadline.
        stack.enter_context(_asking([partial(ask, *each) for each in enumerate(switches)], None))
        yield


@contextmanager
def polling_workers(
    addresses: Sequence[tuple[str, int] | None], hear: Callable[[int, dict[str, float]], None]
) -> Iterator[None]:
    """Report the metrics of workers, by where they serve them, twice a second during the block."""

    def ask(number: int, address: tuple[str, int]) -> None:
        with suppress(MetricsError):
            hear(number, told_values(ask_metrics(*address), number))

    asks = [partial(ask, number, address) for number, address in enumerate(addresses) if address]
    # Name resolution may take longer than any deadline.
    with _asking(asks, _PARTING_SECONDS):
        yield


@contextmanager
def _asking(asks: Sequence[Callable[[], None]], seconds: float | None) -> Iterator[None]:
    """Call each in a thread during the block; `seconds`: to wait for its end, None: any time."""
    over = threading.Event()
    threads = [
        threading.Thread(target=_again_and_again, args=(ask, over), name="live poll", daemon=True)
        for ask in asks
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        end = None if seconds is None else time.monotonic() + seconds
        for thread in threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))


def _again_and_again(ask: Callable[[], None], over: threading.Event) -> None:
    """Call `ask` twice a second until `over` is set, and once more after that."""
    last = False
    while not last:
        last = over.is_set()
        ask()
        over.wait(EVERY)


_WORDS = {SwitchTarget.EMBEDDED: "the embedded switch", SwitchTarget.BMV2: "BMv2"}


class Machines:
    """Polls the switches and workers of a network file, and shows their metrics on a board.

    `bank_slots`: as of `PolledSwitch`, leaves first; empty if unknown.
    """

    def __init__(
        self, network: DescribedNetwork, board: Board, bank_slots: Sequence[int] = ()
    ) -> None:
        self._network = network
        self._board = board
        self._bank_slots = bank_slots or [0] * len(network.in_order)
        self._session = 0.0

    @contextmanager
    def polling(self) -> Iterator[None]:
        """Poll all of them during the block."""
        self._begin()
        switches = [
            PolledSwitch(
                client_of(switch, primary=False, deadline=WATCH_DEADLINE),
                # BMv2 does not report slots.
                slots if switch.target is SwitchTarget.EMBEDDED else 0,
            )
            for switch, slots in zip(self._network.in_order, self._bank_slots, strict=True)
        ]
        addresses = [worker.metrics_address for worker in self._network.workers]
        with (
            polling_switches(switches, self._hear_switch),
            polling_workers(addresses, self._board.worker),
        ):
            yield

    def _begin(self) -> None:
        targets = dict.fromkeys(_WORDS[each.target] for each in self._network.in_order)
        self._board.begin(
            f"{' and '.join(targets)}, several machines",
            [bool(worker.metrics) for worker in self._network.workers],
            [switch.name for switch in self._network.in_order],
        )
        self._board.step(f"session {self._session:.0f}" if self._session else "no session yet")

    def _hear_switch(self, number: int, values: dict[str, float]) -> None:
        session = values.get("session", 0.0)
        # A restarted switch has no session at first.
        if number == 0 and session and session != self._session:
            self._session = session
            self._begin()
        self._board.switch(number, values)
