"""The planner's error class."""

from switchgnn.base.errors import SwitchGNNError


class PlannerError(SwitchGNNError):
    """A graph, a request or a plan on disk that the planner cannot use, in one sentence."""
