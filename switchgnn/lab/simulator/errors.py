"""The simulator's error class."""

from switchgnn.base.errors import SwitchGNNError


class SimulatorError(SwitchGNNError):
    """A request that cannot be simulated, or a simulation that failed, in one sentence."""
