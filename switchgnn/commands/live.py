"""`switchgnn live`: a job on several machines in the browser, as it goes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from switchgnn.base.interruptible import end_like_interrupted, wait_for_interrupt
from switchgnn.base.network_file import read_network
from switchgnn.base.options import PLAIN, with_groups
from switchgnn.commands.shared.outputs import check_page_installed, port_option, tell_address
from switchgnn.controller.counters import bank_slots
from switchgnn.controller.target import parts_for

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class JobPageOptions:
    """The options of `switchgnn live`."""

    network: Path = PLAIN.option("FILE", "The network file.", default=Path("network.toml"))
    plan: Path | None = PLAIN.option(
        "FOLDER", "Read the number of slots from the job's plan in this folder."
    )
    live_port: int | None = port_option("Serve the page on this port.")


@app.command(epilog="Example: switchgnn live --network network.toml --plan job/plan")
@with_groups
def live(asked: JobPageOptions) -> None:
    """Show a job on several machines in the browser.

    This serves a page for a browser on this machine until Ctrl-C. It only reads
    from the job, so you can start and stop it at any time. The network file
    names the job, and has the P4Runtime addresses of the switches and the
    workers' metrics addresses.
    """
    check_page_installed("switchgnn live")
    described = read_network(asked.network)
    slots: Sequence[int] = ()
    if asked.plan is not None:
        slots = [bank_slots(part.switch) for part, _ in parts_for(asked.plan, described)]
    # These need packages that other commands do without.
    from switchgnn.live.board import Board, JobOutcome  # noqa: PLC0415
    from switchgnn.live.polling import polling_machines  # noqa: PLC0415
    from switchgnn.live.server import serve_page  # noqa: PLC0415

    end_like_interrupted()
    board = Board(f"{len(described.workers)} workers of {asked.network.name}")
    with serve_page(board, asked.live_port or 0) as address:
        try:
            with polling_machines(described, board, slots):
                tell_address(address)
                wait_for_interrupt()
        except KeyboardInterrupt:
            board.end(JobOutcome.INTERRUPTED, "The page is closed; the job continues.")
