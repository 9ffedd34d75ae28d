"""One class per P4 control: the entries of its tables."""

from switchgnn.controller.controls.access import Destination, Partial, Source
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.controls.forward import Forward
from switchgnn.controller.controls.loop import Result
from switchgnn.controller.controls.rewrite import Rewrite
from switchgnn.controller.controls.session import WorkerPorts
from switchgnn.controller.controls.tables import Keyed

KEYED: tuple[type[Keyed], ...] = (
    WorkerPorts,
    Forward,
    Source,
    Destination,
    Partial,
    Fanout,
    Result,
    Rewrite,
)
"""All tables with entries."""
