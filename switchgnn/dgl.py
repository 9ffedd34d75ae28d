"""Your own script with the Deep Graph Library (DGL), as ``switchgnn.torch`` is for PyG.

A wrapped model of ``GraphConv``, ``SAGEConv`` and ``GINConv`` layers is called with the graph of
its worker: ``model(graph_of(worker.data), x)``.
"""

from importlib.metadata import version
from typing import Any

from switchgnn.base.machine import how_to_install
from switchgnn.training import job

try:
    if not (_found := version("dgl")).startswith("1.1."):
        raise ImportError(
            f"switchgnn.dgl needs DGL 1.1.3, and {_found} is installed: {how_to_install('dgl')}."
        )
    from switchgnn.training.layers.dgl_layers import data_of, graph_of
    from switchgnn.training.script import Worker, join
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "switchgnn.dgl needs DGL 1.1.3, PyTorch and PyTorch Geometric, but "
        f"{error.name} is missing: {how_to_install('dgl')}.",
        name=error.name,
    ) from error

__all__ = ["Worker", "graph_of", "join", "write_job"]


def write_job(graph: Any, *where: Any, name: str = "data", **options: Any) -> job.Job:  # noqa: ANN401
    """Write the job of a DGLGraph, as ``switchgnn.torch.write_job(data, workers, folder)`` does.

    Args:
        graph: without parallel edges, whose ``ndata`` has `feat`, `label`, `train_mask`,
            `val_mask` and `test_mask`.
        where: the number of workers, and the folder.
        name: of the graph in messages and reports.
        options: those of ``switchgnn.torch.write_job``.

    Returns:
        The job.
    """
    return job.write_job(data_of(graph, name), *where, name=name, **options)
