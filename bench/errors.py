"""The error of a figure that was not measured."""

from switchgnn.base.errors import SwitchGNNError


class BenchError(SwitchGNNError):
    """A figure cannot be measured here, or its load did not work."""
