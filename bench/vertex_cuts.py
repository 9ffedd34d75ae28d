"""Bytes on the busiest link, of edge cuts and vertex cuts, over the switch and between hosts.

Counted from plans, for exchanges of rows of 64 numbers, with room for all sums at once and for a
twelfth of them: `python -m bench.vertex_cuts GRAPH ...`.
"""

import sys
from itertools import product

from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.lanes import frame_bytes
from switchgnn.planner.build import build_resolved
from switchgnn.planner.costs.forecast import StarForecast, outlook_of
from switchgnn.planner.costs.seconds import NetworkModel
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.partition.vertex_cut import VERTEX_CUTS, ReplicaGraph
from switchgnn.planner.presets import PlanContext, PlanRequest, resolve_strategies

WIDTH, BANKS_OF_SUM = 64, 2


def busiest(graph: Graph, workers: int, partition: str, sums: int) -> tuple[dict[str, int], str]:
    """Return the bytes of the busiest link by transport, and what there is to say of the cut."""
    request = PlanRequest(partition=partition)
    cut = request.cut(graph, workers, 0)
    context = PlanContext(workers, BANKS_OF_SUM * sums, lanes=WIDTH)
    choice = resolve_strategies(request, cut, context)
    plan = build_resolved(cut, choice, context, program="00", seed=0)
    forecast = StarForecast(NetworkModel(), {Direction.FORWARD: {WIDTH: 1.0}})
    edges, frames = boundary_edges(cut, plan.assignment), (frame_bytes(WIDTH),)
    outlook = outlook_of(plan, edges, forecast, frames, None, star=True)
    said = ""
    if isinstance(cut, ReplicaGraph):
        said = f"{cut.replication_factor:.2f} replicas, edges {cut.edge_balance:.2f} of the mean"
    return {name: load.busiest for name, load in outlook.loads.items()}, said


def main(names: list[str]) -> None:
    """Print a row for each graph, number of workers and cut."""
    for name in names:
        graph = load_graph(name)
        for workers, share in product((8, 32), (1, 12)):
            sums = graph.vertices // share
            edge = busiest(graph, workers, "metis", sums)[0]
            best = min(edge["switch"], edge["host-partial"])
            told = ", ".join(f"{way} {size / 1e3:,.0f} kB" for way, size in edge.items())
            print(f"{name}, {workers} workers, room for {sums:,} sums, edge cut: {told}")
            for cut in VERTEX_CUTS:
                found, said = busiest(graph, workers, cut, sums)
                ratio, alone = found["switch"] / best, found["switch"] / found["host"]
                print(
                    f"  {cut}: switch {found['switch'] / 1e3:,.0f} kB, {ratio:.2f} of the better; "
                    f"{alone:.2f} of CDFGNN's hosts; {said}"
                )


if __name__ == "__main__":
    main(sys.argv[1:])
