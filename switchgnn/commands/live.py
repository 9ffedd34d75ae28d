# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn live`: a job on several machines in the browser, as it goes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.base.described import DescribedNetwork, read_network
from switchgnn.base.interruptible import wait_for_interrupt
from switchgnn.base.metrics import check_installed
from switchgnn.base.options import OUTPUT
from switchgnn.commands.shared.console import end_like_interrupted
from switchgnn.commands.shared.live import check_page_installed, tell_address
from switchgnn.controller.counters import bank_slots
from switchgnn.controller.target import parts_for

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: switchgnn live --network network.toml --plan job/plan")
def live(
    *,
    network: Annotated[Path, typer.Option(metavar="FILE", help="The network file.")] = Path(
        "network.toml"
    ),
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            show_default=False,
            help="The plan of the job, which says how many slots it uses.",
        ),
    ] = None,
    live_port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65_535,
            metavar="PORT",
            rich_help_panel=OUTPUT,
            show_default="any that is free",
            help="Of the page.",
        ),
    ] = 0,
) -> None:
    """Show a job on several machines in the browser.

    It serves a page for a browser on this machine, until Ctrl-C, and only reads:
    it may begin and end when it likes. Switches are asked where the network file
    has their P4Runtime, and workers where it has their metrics.
    """
    check_page_installed("switchgnn live")
    check_installed()
    described = read_network(network)
    slots = () if plan is None else _bank_slots(plan, described)
    # What needs packages that other commands do without.
    from switchgnn.live.machines import Machines  # noqa: PLC0415
    from switchgnn.live.server import showing  # noqa: PLC0415
    from switchgnn.live.snapshot import Ending, Outcome  # noqa: PLC0415

    end_like_interrupted()
    title = f"{len(described.workers)} workers of {network.name}"
    with showing(title, port=live_port) as (show, address):
        machines = Machines(described, show.gathering, slots)
        try:
            # What is told comes in other threads.
            with machines.asking(), show.looking(lambda: None):
                tell_address(address)
                wait_for_interrupt()
        except KeyboardInterrupt:
            # Nothing else ends it, and the job goes on.
            words = "Nobody looks on any more; the job goes on."
            show.gathering.end(Ending(Outcome.INTERRUPTED, words))


def _bank_slots(plan: Path, network: DescribedNetwork) -> Sequence[int]:
    return [bank_slots(part.switch) for part, _ in parts_for(plan, network)]
