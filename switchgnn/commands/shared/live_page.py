# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Hands what happens in a run to the page that shows it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.commands.shared.onlooker import Onlooker, RunningNetwork
from switchgnn.controller import P4RuntimeClient
from switchgnn.controller.watch import WATCH_DEADLINE
from switchgnn.host.metrics import METRICS_EVENT
from switchgnn.live.gather import EVERY, LinkSeen
from switchgnn.live.machines import PolledSwitches
from switchgnn.live.server import Show, showing
from switchgnn.live.snapshot import (
    CablePlace,
    Ending,
    Epoch,
    JobOutcome,
    Picture,
    SwitchPlace,
    WorkerPlace,
)
from switchgnn.topologies import Target
from switchgnn.topologies.fabric import Backlog

_INTERRUPTED = 130  # the exit code of Ctrl-C


@contextmanager
def served(title: str, *, port: int, epochs: int) -> Iterator[tuple[Onlooker, str]]:
    """Serve a page during the block; its last event is how the block ended."""
    with showing(title, port=port, epochs=epochs) as (show, address):
        try:
            yield _PageOnlooker(show), address
        except (KeyboardInterrupt, typer.Exit) as leaving:
            if isinstance(leaving, typer.Exit) and leaving.exit_code != _INTERRUPTED:
                raise
            show.gathering.end(Ending(JobOutcome.INTERRUPTED, "Interrupted."))
            raise
        except SwitchGNNError as error:
            show.gathering.end(Ending(JobOutcome.FAILED, str(error)))
            raise
        except Exception as error:
            show.gathering.end(Ending(JobOutcome.FAILED, f"{type(error).__name__}: {error}"))
            raise
        finally:
            # All other ways to leave the block, as an exit code, are regular ends.
            show.gathering.end(Ending(JobOutcome.DONE, "Done."))


class _PageOnlooker(Onlooker):
    """Updates a page."""

    tell_every = EVERY

    def __init__(self, show: Show) -> None:
        self._show = show

    def step(self, name: str) -> None:
        """Show a step."""
        if self._show.gathering.step(name):
            self._show.publish()

    @contextmanager
    def over(self, running: RunningNetwork) -> Iterator[None]:
        """Show a network during the block."""
        gathering = self._show.gathering
        gathering.begin(_picture(running))
        with ExitStack() as stack:
            look = _Look(self._show, running)
            stack.callback(look.close)
            stack.enter_context(self._show.looking(look))
            yield
            gathering.finish()

    @contextmanager
    def over_one_process(self, transport: str) -> Iterator[None]:
        """Show a process without a network during the block."""
        self._show.gathering.begin(Picture(transport, "one process", "no switch", (), (), ()))
        with self._show.looking(lambda: None):
            yield

    def event(self, worker: int, event: dict[str, Any]) -> None:
        """Show the metrics of a worker, and worker 0's epochs."""
        if event["event"] == METRICS_EVENT:
            self._show.gathering.worker(worker, event["values"])
        elif event["event"] == "epoch" and worker == 0:
            accuracy = event["accuracy"] or {}
            self._show.gathering.epoch(
                Epoch(event["epoch"], event["loss"], accuracy.get("validation"))
            )

    def done(self, words: str, *, right: bool = True) -> None:
        """Show the end of the run, which may be kept for long."""
        self._show.gathering.end(Ending(JobOutcome.DONE if right else JobOutcome.WRONG, words))
        self._show.publish()


def _picture(running: RunningNetwork) -> Picture:
    site = running.fabric.site
    upper = {cable.upper.switch for cable in site.cables}
    target = "BMv2" if site.target is Target.BMV2 else "the embedded switch"
    return Picture(
        transport=running.transport,
        ran_on="Mininet" if running.fabric.workers_have_hosts else "loopback",
        target=target,
        workers=tuple(
            WorkerPlace(switch, site.port(worker)) for worker, (switch, _) in enumerate(site.places)
        ),
        switches=tuple(
            SwitchPlace(switch.name, int(number in upper))
            for number, switch in enumerate(site.switches)
        ),
        cables=tuple(
            CablePlace(cable.name, cable.lower.switch, cable.upper.switch) for cable in site.cables
        ),
        steps=running.steps,
        no_slots=f"not told by {target}",
    )


class _Look:
    """Reads the state of switches and of the links between them."""

    def __init__(self, show: Show, running: RunningNetwork) -> None:
        self._show = show
        self._fabric = running.fabric
        told = running.fabric.site.target is not Target.BMV2
        clients = [
            P4RuntimeClient(
                switch.grpc_address, tls=running.credentials, primary=False, deadline=WATCH_DEADLINE
            )
            for switch in running.fabric.site.switches
        ]
        # BMv2 does not report slots.
        self._switches = PolledSwitches(clients, running.bank_slots if told else ())

    def __call__(self) -> None:
        self._show.gathering.switches(*self._switches.read())
        self._show.gathering.links(*self._links())

    def close(self) -> None:
        """Disconnect."""
        self._switches.close()

    def _links(self) -> tuple[list[LinkSeen], list[LinkSeen]]:
        site = self._fabric.site
        links = site.workers + len(site.cables)
        try:
            waiting = self._fabric.backlogs() or [Backlog(None, None)] * links
            cables = self._cables()
        except (OSError, SwitchGNNError):
            # The network is shutting down.
            waiting = [Backlog(None, None)] * links
            cables = [LinkSeen() for _ in site.cables]
        return (
            [
                LinkSeen(waiting_up=each.up, waiting_down=each.down)
                for each in waiting[: site.workers]
            ],
            [
                LinkSeen(cable.bytes_up, cable.bytes_down, cable.lost, each.up, each.down)
                for cable, each in zip(cables, waiting[site.workers :], strict=True)
            ],
        )

    def _cables(self) -> list[LinkSeen]:
        cables = self._fabric.site.cables
        if self._fabric.relay is not None:
            counts = self._fabric.relay.counts()
            return [
                LinkSeen(
                    counts[cable.name]["up"],
                    counts[cable.name]["down"],
                    sum(way["lost"] for way in counts[cable.name]["faults"].values()),
                )
                for cable in cables
            ]
        counted = self._fabric.cable_bytes()
        if counted is None:
            return [LinkSeen() for _ in cables]
        return [LinkSeen(each.up, each.down) for each in counted]
