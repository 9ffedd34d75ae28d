"""One class per P4 control: the entries of its tables."""

from switchgnn.controller.controls.access import Destination, Partial, Source
from switchgnn.controller.controls.congestion import Congestion
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.controls.forward import Forward
from switchgnn.controller.controls.job import Jobs, WorkerPorts
from switchgnn.controller.controls.loop import Result
from switchgnn.controller.controls.one_bank import Allowed
from switchgnn.controller.controls.rewrite import Rewrite
from switchgnn.controller.controls.session import Session, Tier
from switchgnn.controller.controls.tables import Entries, Keyed
from switchgnn.controller.p4runtime.layout import Layout

KEYED: tuple[type[Keyed], ...] = (
    WorkerPorts,
    Tier,
    Forward,
    Source,
    Destination,
    Partial,
    Allowed,
    Fanout,
    Result,
    Rewrite,
)
"""The tables whose entries follow from a plan."""
ENTRIES: tuple[type[Entries], ...] = (Jobs, Session, *KEYED, Congestion)
"""All tables with entries."""


def keyed_in(layout: Layout) -> list[Keyed]:
    """Return the tables of a program whose entries follow from a plan."""
    return [control(layout) for control in KEYED if control.is_in(layout)]


def entries_in(layout: Layout) -> list[Entries]:
    """Return all tables of a program with entries."""
    return [control(layout) for control in ENTRIES if control.is_in(layout)]
