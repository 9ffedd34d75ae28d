"""The control plane: brings switches to a plan over P4Runtime, and reads them."""

from switchgnn.base.network import Network, leaf_spine_networks, star_network
from switchgnn.controller.admission import JobRequest
from switchgnn.controller.base.errors import ControllerError
from switchgnn.controller.base.plan import SwitchPlan, leaf_spine_switch_plan, load_plan
from switchgnn.controller.change import InstallReport
from switchgnn.controller.controls.outcome import Outcome
from switchgnn.controller.counters import Counters, read_counters
from switchgnn.controller.install import DesiredStates, Share, clear, install_each
from switchgnn.controller.p4runtime.client import P4RuntimeClient, program_cookie
from switchgnn.controller.p4runtime.connection import TlsOptions
from switchgnn.controller.show import show, show_entries
from switchgnn.controller.watch import WatchEventKind, watch

__all__ = [
    "ControllerError",
    "Counters",
    "DesiredStates",
    "InstallReport",
    "JobRequest",
    "Network",
    "Outcome",
    "P4RuntimeClient",
    "Share",
    "SwitchPlan",
    "TlsOptions",
    "WatchEventKind",
    "clear",
    "install_each",
    "leaf_spine_networks",
    "leaf_spine_switch_plan",
    "load_plan",
    "program_cookie",
    "read_counters",
    "show",
    "show_entries",
    "star_network",
    "watch",
]
