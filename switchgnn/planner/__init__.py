"""The planner: a graph in, the tables of the switch and the parts of the workers out."""

from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.build import build_plan
from switchgnn.planner.check.plan import reference_sums
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import Graph, graph_from_edges
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.partition.simple import load_assignment
from switchgnn.planner.partition.workers import partition_workers
from switchgnn.planner.plan.files import (
    read_assignment,
    read_manifest,
    read_plan,
    read_switch_part,
    read_worker_part,
    write_plan,
)
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.plan.plan import Plan, SwitchPart, WorkerPart
from switchgnn.planner.presets import (
    PRESETS,
    PlanContext,
    PlanRequest,
    ResolvedStrategies,
    resolve_strategies,
)
from switchgnn.planner.strategies import BLOCK_STRATEGIES, ORDER_STRATEGIES, PARTITION_STRATEGIES

__all__ = [
    "BLOCK_STRATEGIES",
    "ORDER_STRATEGIES",
    "PARTITION_STRATEGIES",
    "PRESETS",
    "BoundaryEdges",
    "Direction",
    "Graph",
    "Manifest",
    "Plan",
    "PlanContext",
    "PlanRequest",
    "PlannerError",
    "ResolvedStrategies",
    "SwitchPart",
    "WorkerPart",
    "boundary_edges",
    "build_plan",
    "graph_from_edges",
    "load_assignment",
    "load_graph",
    "partition_workers",
    "read_assignment",
    "read_manifest",
    "read_plan",
    "read_switch_part",
    "read_worker_part",
    "reference_sums",
    "resolve_strategies",
    "write_plan",
]
