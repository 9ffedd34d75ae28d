"""The errors of exchanges over the switch."""

from switchgnn.host.base.errors import HostError


class InNetworkError(HostError):
    """The switch or another worker fails in an exchange over the switch."""


class ExchangeTimeoutError(InNetworkError):
    """The switch or another worker did not answer in time."""


class PlanMismatchError(InNetworkError):
    """The switch serves another plan than this worker holds."""


class SessionMismatchError(InNetworkError):
    """The switch serves another install than this worker takes part in."""


class RoundMismatchError(InNetworkError):
    """The switch is in a later round, or another process was this worker before."""


class MagnitudeError(InNetworkError):
    """The magnitude that a worker reported does not work for the others."""


class DisagreementError(InNetworkError):
    """Workers exchange features of other widths or directions, or reduce other tensors."""


class BarrierError(InNetworkError):
    """The barrier's answers contradict what this worker knows."""


def check_plan(worker: int, held: int, served: int) -> None:
    """Reject a switch with another plan; `held`, `served`: the first 32 bits of plan digests."""
    if served != held:
        raise PlanMismatchError(
            f"Worker {worker} holds plan {held:08x}, the switch serves plan {served:08x}. "
            "Install the worker's plan: `switchgnn controller install PLAN`."
        )
