# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Polling of the switches and workers of a network file, each in its own thread."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from switchgnn.base.described import DescribedNetwork, SwitchTarget
from switchgnn.base.metrics import MetricsError, ask_metrics
from switchgnn.controller.counters import SlotsInUse, read_slots_in_use
from switchgnn.controller.errors import ControllerError
from switchgnn.controller.metrics import Reading, SwitchMetrics
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.target import client_of
from switchgnn.controller.watch import WATCH_DEADLINE
from switchgnn.host.metrics import told_values
from switchgnn.live.gather import EVERY, Gathering
from switchgnn.live.snapshot import CablePlace, Picture, SwitchPlace, WorkerPlace


class PolledSwitches:
    """Reads switches.

    Args:
        clients: read-only, one per switch; opened on use, and again after a restart.
        bank_slots: the most slots of a bank that each switch's plan uses; empty if unknown, or
            if the switch does not report used slots.
    """

    def __init__(self, clients: Sequence[P4RuntimeClient], bank_slots: Sequence[int] = ()) -> None:
        self._clients = clients
        self._bank_slots = bank_slots
        self._metrics = SwitchMetrics(clients, interval=0.0, with_tables=False)

    def read(self) -> tuple[list[Reading | None], list[SlotsInUse | None]]:
        """Return a reading and the used slots of each switch, None where it gives none."""
        readings = self._metrics.readings()
        slots = [
            None if reading is None else self._slots(place)
            for place, reading in enumerate(readings)
        ]
        return readings, slots

    def up(self) -> list[bool]:
        """Return whether each switch answered, with or without a program."""
        return self._metrics.up()

    def close(self) -> None:
        """Disconnect."""
        with suppress(ControllerError):
            self._metrics.close()

    def _slots(self, switch: int) -> SlotsInUse | None:
        if not self._bank_slots or not self._bank_slots[switch]:
            return None
        with suppress(ControllerError):
            return read_slots_in_use(self._clients[switch], self._bank_slots[switch])
        return None


_WORDS = {SwitchTarget.EMBEDDED: "the embedded switch", SwitchTarget.BMV2: "BMv2"}
_PARTING_SECONDS = 2.0


def picture_of(network: DescribedNetwork, *, with_slots: bool) -> Picture:
    """Return the picture of a network; `with_slots`: the slots of its plan are known."""
    order = network.in_order
    place = {switch.name: number for number, switch in enumerate(order)}
    target = " and ".join(_WORDS[each] for each in dict.fromkeys(each.target for each in order))
    return Picture(
        transport="switch",
        ran_on="several machines",
        target=target,
        workers=tuple(
            WorkerPlace(place[worker.switch], worker.port, told=bool(worker.metrics))
            for worker in network.workers
        ),
        switches=tuple(
            SwitchPlace(switch.name, int(number >= len(network.leaves)))
            for number, switch in enumerate(order)
        ),
        cables=tuple(
            CablePlace(f"{cable.leaf}-{cable.spine}", place[cable.leaf], place[cable.spine])
            for cable in network.cables
        ),
        no_slots=f"not told by {target}" if with_slots else "not told without a plan",
    )


class Machines:
    """Polls the switches and workers of a network.

    Args:
        network: of a network file.
        gathering: receives the answers.
        bank_slots: the most slots of a bank that each switch's plan uses, leaves first; empty if
            unknown.
    """

    def __init__(
        self, network: DescribedNetwork, gathering: Gathering, bank_slots: Sequence[int] = ()
    ) -> None:
        self._network = network
        self._gathering = gathering
        self._picture = picture_of(network, with_slots=bool(bank_slots))
        self._lock = threading.Lock()
        self._up: list[bool | None] = [None] * len(network.in_order)
        self._session = 0
        clients = [
            client_of(switch, primary=False, deadline=WATCH_DEADLINE) for switch in network.in_order
        ]
        slots: Sequence[Sequence[int]] = [
            # BMv2 does not report them.
            bank_slots[place : place + 1] if switch.target is SwitchTarget.EMBEDDED else ()
            for place, switch in enumerate(network.in_order)
        ]
        self._switches = [
            PolledSwitches([client], own) for client, own in zip(clients, slots, strict=True)
        ]

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Poll all of them twice a second during the block."""
        self._gathering.begin(self._picture)
        over = threading.Event()
        switches = [
            _thread(f"switch {switch.name}", partial(self._follow_switch, place), over)
            for place, switch in enumerate(self._network.in_order)
        ]
        workers = [
            _thread(f"worker {number}", partial(self._follow_worker, number, *place), over)
            for number, worker in enumerate(self._network.workers)
            if (place := worker.metrics_place) is not None
        ]
        for thread in (*switches, *workers):
            thread.start()
        try:
            yield
        finally:
            over.set()
            # gRPC calls must end before the interpreter does; each has a deadline.
            for thread in switches:
                thread.join()
            end = time.monotonic() + _PARTING_SECONDS
            for thread in workers:
                # Name resolution may take longer.
                thread.join(max(0.0, end - time.monotonic()))

    def _follow_switch(self, place: int, over: threading.Event) -> None:
        try:
            again_and_again(partial(self._ask_switch, place), over)
        finally:
            self._switches[place].close()

    def _ask_switch(self, place: int) -> None:
        (reading,), (slots,) = self._switches[place].read()
        (up,) = self._switches[place].up()
        with self._lock:
            self._up[place] = up
            if reading is not None and place == 0:
                self._note_session(reading.session.session)
            self._gathering.step(self._words())
            self._gathering.switch(place, reading, slots, up=up)

    def _note_session(self, session: int) -> None:
        """Begin again for a new session; a restarted switch has none at first."""
        if session and session != self._session:
            self._session = session
            self._gathering.begin(self._picture, at_zero=True)

    def _words(self) -> str:
        names = [switch.name for switch in self._network.in_order]
        gone = [name for name, up in zip(names, self._up, strict=True) if up is False]
        if gone:
            return f"no answer from {', '.join(gone)}"
        return f"session {self._session}" if self._session else "no session yet"

    def _follow_worker(self, number: int, host: str, port: int, over: threading.Event) -> None:
        again_and_again(partial(self._ask_worker, number, host, port), over)

    def _ask_worker(self, number: int, host: str, port: int) -> None:
        try:
            values = told_values(ask_metrics(host, port), number)
        except MetricsError:
            self._gathering.no_answer(number)
            return
        self._gathering.worker(number, values)


def _thread(
    name: str, run: Callable[[threading.Event], None], over: threading.Event
) -> threading.Thread:
    return threading.Thread(target=run, args=(over,), name=name, daemon=True)


def again_and_again(ask: Callable[[], None], over: threading.Event) -> None:
    """Call `ask` twice a second until `over` is set."""
    while not over.is_set():
        ask()
        over.wait(EVERY)
