"""A transport whose paths may change between exchanges."""

from switchgnn.host.direct.kinds import BinnedSchedule
from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.paths.base import BlockPaths, PathTime


class PathsTransport(InNetworkExchange):
    """Sums of each block over the switch or between hosts; see ``Path``."""

    @property
    def paths(self) -> BlockPaths:
        """The present paths."""
        raise NotImplementedError

    def set_paths(self, paths: BlockPaths) -> None:
        """Take other paths from the next exchange on, as all workers must between the same ones.

        TransportError: they are not one path per block of the plan.
        """
        raise NotImplementedError

    def take_times(self) -> list[PathTime]:
        """Return the times since the last call, one for each direction, width and path."""
        raise NotImplementedError

    def standby(self) -> BinnedSchedule:
        """Return the schedule of all sums between hosts, partial sums where those are fewer."""
        raise NotImplementedError
