"""The errors of fabrics."""

from switchgnn.base.errors import SwitchGNNError


class FabricError(SwitchGNNError):
    """A switch, a network or a process could not be started."""
