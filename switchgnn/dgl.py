"""Your own script with the Deep Graph Library (DGL), as ``switchgnn.torch`` is for PyG.

A wrapped model of ``GraphConv``, ``SAGEConv`` and ``GINConv`` layers is called with the graph of
its worker: ``model(graph_of(worker), x)``.
"""

from importlib.metadata import version
from pathlib import Path
from typing import Any

from switchgnn.base.machine import how_to_install
from switchgnn.training import job

try:
    if not (_found := version("dgl")).startswith("1.1."):
        raise ImportError(
            f"switchgnn.dgl needs DGL 1.1.3, and {_found} is installed: {how_to_install('dgl')}."
        )
    from switchgnn.training.join import Worker, join
    from switchgnn.training.layers import dgl_layers
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "switchgnn.dgl needs DGL 1.1.3, PyTorch and PyTorch Geometric, but "
        f"{error.name} is missing: {how_to_install('dgl')}.",
        name=error.name,
    ) from error

__all__ = ["Worker", "graph_of", "join", "write_job"]


def write_job(graph: Any, workers: int, folder: str | Path, **options: Any) -> job.Job:  # noqa: ANN401
    """Do what ``switchgnn.torch.write_job`` does for a DGLGraph without parallel edges.

    Its ``ndata`` must have `feat`, `label`, `train_mask`, `val_mask` and `test_mask`.
    """
    data = dgl_layers.data_of(graph, options.get("name", "data"))
    return job.write_job(data, workers, folder, **options)


def graph_of(worker: Worker) -> Any:  # noqa: ANN401
    """Return a worker's part as a DGLGraph: its vertices, and the edges between them.

    Its ``ndata`` has what ``write_job`` takes and, as ``dgl.NID``, the ids in the whole graph.
    Degrees and messages of your own see these edges alone; layers see the whole graph.
    """
    return dgl_layers.graph_of(worker.data)
