"""Your own script with the Deep Graph Library (DGL), as `switchgnn.torch` is for PyG.

``write_job`` takes a DGLGraph, too, and ``graph_of`` is what a wrapped model of ``GraphConv``,
``SAGEConv`` and ``GINConv`` layers is called with: ``model(graph_of(worker), x)``.
"""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from switchgnn.base.machine import how_to_install
from switchgnn.torch import Job, JobError, Worker, join, read_job
from switchgnn.torch import write_job as write_job_of_data

try:
    _INSTALLED = version("dgl")
    if not _INSTALLED.startswith("1.1."):
        raise ImportError(
            f"switchgnn.dgl needs DGL 1.1.3, and {_INSTALLED} is installed: "
            f"{how_to_install('dgl')}."
        )
except PackageNotFoundError as error:
    raise ModuleNotFoundError(
        f"switchgnn.dgl needs DGL 1.1.3, which is not installed: {how_to_install('dgl')}.",
        name="dgl",
    ) from error

from switchgnn.training.layers import dgl_layers

__all__ = ["Job", "JobError", "Worker", "graph_of", "join", "read_job", "write_job"]


def write_job(graph: Any, workers: int, folder: str | Path, **options: Any) -> Job:  # noqa: ANN401
    """Plan a training and write the files that its workers need, as ``switchgnn.torch`` does.

    Args:
        graph: a homogeneous DGLGraph without parallel edges, whose ``ndata`` has `feat`, `label`,
            `train_mask`, `val_mask` and `test_mask`; or what ``switchgnn.torch.write_job`` takes.
        workers: the number of workers.
        folder: new, empty, or an older job, which is replaced as a whole.
        options: those of ``switchgnn.torch.write_job``.

    Returns:
        The job.

    Raises:
        SwitchGNNError: as there.
    """
    if hasattr(graph, "ndata"):
        graph = dgl_layers.data_of(graph, options.get("name", "data"))
    return write_job_of_data(graph, workers, folder, **options)


def graph_of(worker: Worker) -> Any:  # noqa: ANN401
    """Return a worker's part as a DGLGraph: its vertices, and the edges between them.

    Its ``ndata`` has `feat`, `label`, the masks and, as ``dgl.NID``, the ids in the whole graph.
    Degrees and messages of your own see these edges alone; layers see the whole graph.
    """
    return dgl_layers.graph_of(worker.data)
