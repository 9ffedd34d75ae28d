"""Polls the switches of a run, and the workers of a network file, each in its own thread."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

from finsy.proto import p4r

from switchgnn.base.metrics import MetricsError, Values, ask_metrics
from switchgnn.base.network_file import DescribedNetwork, Target
from switchgnn.base.tasks import repeating
from switchgnn.controller import ControllerError, P4RuntimeClient
from switchgnn.controller.metrics import SwitchMetrics
from switchgnn.controller.target import client_of
from switchgnn.controller.watch import WATCH_DEADLINE
from switchgnn.host.metrics import told_values
from switchgnn.live.board import EVERY, Board

# Slots of a sample: the switch copies each cell separately, between two turns of forwarding.
_MOST_CELLS = 256
# The low bits of a state are a count, the others the tag of a block; see banks.p4.
_COUNT_BITS = 16
_WORDS = {
    Target.EMBEDDED: "the embedded switch",
    Target.TOFINO: "the embedded switch with the Tofino program",
    Target.BMV2: "BMv2",
}


class PolledSwitch:
    """Reads a switch with a read-only client, opened on use, and again after a restart.

    `job`: the job whose slots are read. `bank_slots`: the most slots of a bank that its plan uses;
    0 if unknown, or if the switch does not report used slots.
    """

    def __init__(self, client: P4RuntimeClient, job: str, bank_slots: int = 0) -> None:
        self._client = client
        self._job = job
        self._bank_slots = bank_slots
        self._metrics = SwitchMetrics([client], interval=0.0, with_tables=False)

    def values(self) -> dict[str, float]:
        """Return its metrics but its queues, and the job's slots if it says.

        Of `slots` that the plan may use, `slots_read` were read, evenly spread; `slots_in_use` of
        these have contributions to the newest block among them, complete or not.
        """
        found = dict(self._metrics.values()[0])
        first = found.get(f"job_first_slot/{self._job}")
        if first is not None and self._bank_slots:
            with suppress(ControllerError):
                found |= read_slots(self._client, int(first), self._bank_slots)
        return found

    def close(self) -> None:
        """Disconnect."""
        with suppress(ControllerError):
            self._metrics.close()


def read_slots(client: P4RuntimeClient, first: int, slots_per_bank: int) -> dict[str, float]:
    """Read a sample of the slots that a plan may use, by the first; see `PolledSwitch.values`."""
    banks = [
        array
        for name, array in sorted(client.get_layout().registers.items())
        if name.startswith("bank") and name.endswith(".state")
    ]
    if not banks:
        return {}
    each = min(slots_per_bank, *(bank.size - first for bank in banks))
    step = -(-each * len(banks) // _MOST_CELLS)
    entities = [
        p4r.Entity(
            register_entry=p4r.RegisterEntry(register_id=bank.id, index=p4r.Index(index=index))
        )
        for bank in banks
        for index in range(first, first + each, step)
    ]
    answers = client.read(entities)
    if len(answers) != len(entities):
        return {}
    states = [int.from_bytes(each.register_entry.data.bitstring, "big") for each in answers]
    newest = max(state >> _COUNT_BITS for state in states)
    used = sum(newest > 0 and state >> _COUNT_BITS == newest for state in states)
    return {"slots_in_use": used, "slots_read": len(states), "slots": each * len(banks)}


def kinds_of(network: DescribedNetwork) -> str:
    """Return what the switches of a network are, such as `the embedded switch`."""
    return " and ".join(dict.fromkeys(_WORDS[switch.target] for switch in network.in_order))


@contextmanager
def polling_switches(
    network: DescribedNetwork, hear: Callable[[int, Values], None], bank_slots: Sequence[int] = ()
) -> Iterator[None]:
    """Report the metrics of each switch twice a second during the block, and once after it.

    `bank_slots`: as of `PolledSwitch`, leaves first; empty if unknown.
    """

    def ask(number: int, polled: PolledSwitch) -> None:
        hear(number, polled.values())

    slots = bank_slots or [0] * len(network.in_order)
    with ExitStack() as stack:
        for number, switch in enumerate(network.in_order):
            client = client_of(switch, primary=False, deadline=WATCH_DEADLINE)
            # BMv2 does not report slots.
            used = slots[number] if switch.target is Target.EMBEDDED else 0
            polled = PolledSwitch(client, network.job, used)
            stack.callback(polled.close)
            stack.callback(ask, number, polled)
            # gRPC calls must end before the interpreter does; each has a deadline.
            stack.enter_context(repeating(partial(ask, number, polled), EVERY, "live poll"))
        yield


@contextmanager
def polling_workers(
    addresses: Sequence[tuple[str, int] | None], hear: Callable[[int, Values], None]
) -> Iterator[None]:
    """Report the metrics of workers, by where they serve them, twice a second during the block."""
    over = threading.Event()

    def poll(number: int, address: tuple[str, int]) -> None:
        while not over.wait(EVERY):
            with suppress(MetricsError):
                hear(number, told_values(ask_metrics(*address), number))

    for number, address in enumerate(addresses):
        if address:
            # Nothing waits for its end: name resolution may take longer than any deadline.
            threading.Thread(target=poll, args=(number, address), daemon=True).start()
    try:
        yield
    finally:
        over.set()


@contextmanager
def polling_machines(
    network: DescribedNetwork, board: Board, bank_slots: Sequence[int] = ()
) -> Iterator[None]:
    """Show the metrics of a network file's switches and workers on a board during the block.

    `bank_slots`: as for `polling_switches`.
    """
    session = 0.0

    def begin() -> None:
        board.begin(
            f"{kinds_of(network)}, several machines",
            [bool(worker.metrics) for worker in network.workers],
            [switch.name for switch in network.in_order],
            network.job,
        )
        board.step(f"session {session:.0f}" if session else "no session yet")

    def hear_switch(number: int, values: Values) -> None:
        nonlocal session
        found = values.get(f"session/{network.job}", 0.0)
        # A restarted switch has no session at first.
        if number == 0 and found and found != session:
            session = found
            begin()
        board.switch(number, values)

    begin()
    addresses = [worker.metrics_address for worker in network.workers]
    with (
        polling_switches(network, hear_switch, bank_slots),
        polling_workers(addresses, board.worker),
    ):
        yield
