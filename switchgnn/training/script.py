"""What your own script uses: `join` a job, and the `Worker` that it yields."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from switchgnn.host.base.compression import WHOLE_BITS
from switchgnn.host.base.pace import Pace
from switchgnn.host.metrics import serving_metrics
from switchgnn.host.registry import SWITCH
from switchgnn.training.base.compression import OFF, CompressionOptions
from switchgnn.training.base.errors import TrainingError, told_in_a_sentence
from switchgnn.training.base.steps import SharedSteps
from switchgnn.training.data.partition import Partition
from switchgnn.training.exchange.cache import CacheControl, Compressing
from switchgnn.training.exchange.gradients import GradientSums
from switchgnn.training.joining import Joined, join_job
from switchgnn.training.layers.bins import RemoteSums, distribute_over, sums_over
from switchgnn.training.layers.check import check_model
from switchgnn.training.layers.norms import VertexSums
from switchgnn.training.layers.rows import VertexRows, over_gloo
from switchgnn.training.trainer import view_of


class Worker:
    """A worker of a job, which ``join`` yields.

    Attributes:
        job, folder, session: what all workers share; see ``Job``.
        number: the number of this worker.
        data: its part of the graph, a ``Data`` of PyTorch Geometric: ``x``, ``y``, ``edge_index``
            with the edges within the worker, ``edge_weight`` if the data set has weights,
            ``train_mask``, ``val_mask``, ``test_mask``, and ``n_id``, the ids of its vertices in
            the whole graph. A job without labels has no `y` and no masks.
        classes: the number of classes; 0 without labels.
        remote: the sums over remote neighbours, with the clock and the ledger of the exchanges.
    """

    def __init__(self, joined: Joined, remote: RemoteSums, seed: int) -> None:
        self.job, self.folder, self.session = joined.job, joined.folder, joined.session
        self.partition = joined.partition
        self.number = joined.partition.worker
        self.classes = joined.partition.classes
        self.data = _data_of(joined.partition)
        self.remote = remote
        self._seed = seed
        self._sums = GradientSums(
            joined.first, remote.attending, None, joined.machine, remote.steps
        )
        self._vertices = VertexSums(self._sums.add, joined.partition)
        self._rows = VertexRows(joined.partition, over_gloo(remote.attending, remote.steps))
        self._cache: CacheControl | None = None

    def __deepcopy__(self, _: object) -> "Worker":
        # A copy of a model that uses the worker uses the same.
        return self

    @property
    def workers(self) -> int:
        """The number of workers."""
        return self.partition.workers

    def wrap(
        self,
        model: nn.Module,
        *,
        precompute: bool = True,
        bits: int = WHOLE_BITS,
        cache: float | str | None = None,
        unchecked: bool = False,
    ) -> nn.Module:
        """Make a model of PyG or DGL layers compute on this part what it does on the whole graph.

        All workers get the weights of worker 0. Call the model with ``data.x``,
        ``data.edge_index`` and, if you like, ``data.edge_weight``, on any device, equally often on
        all workers. Compression applies to all models of this worker, and must be the same on all
        workers.

        Args:
            model: built with the layers of docs/models.md or docs/training.md; changed in place.
            precompute: exchange the sums of inputs that do not change once, and keep them.
            bits: of a number in exchanges: 32, 16 or 8. Below 32, the next exchange of a row makes
                up for what rounding took away.
            cache: send only rows that have changed by more than this share of their largest
                number, or of an average row's if that is larger, 0 <= cache < 1. With "auto", the
                share follows the accuracies that you pass to `note_accuracy`; with None, all rows
                are sent. Use no dropout with a cache.
            unchecked: skip the check that runs a copy of the model on a small graph and its parts.
                Worker 0 warns if the copy cannot be run.

        Returns:
            The same model.

        Raises:
            UnsupportedLayerError: a layer needs more than one sum of per-source rows, or the copy
                computes something else on parts of a graph than on the whole, or fails on them.
            TrainingError: `bits` or `cache` has none of these values.
            TransportError: the plan leaves sums to the hosts, or rows were exchanged before.
        """
        options = CompressionOptions(OFF if cache is None else str(cache), bits)
        options.check()
        if options.active:
            self._compressing.compress(options.of_rows(self._seed))
            self._cache = CacheControl(self._compressing, options)
        if self.workers > 1 and not unchecked:
            part, sums = self.partition, self._vertices
            features = part.features.shape[1]
            weighted = part.edge_weights is not None
            facts = {"undirected": part.undirected, "weighted": weighted}
            why = check_model(model, features, **facts, sums=sums)
            if why is not None and self.number == 0:
                warnings.warn(why, stacklevel=2)
        distribute_over(
            *(model, self.partition, self.remote),
            seed=self._seed,
            precompute=precompute,
            vertex_sums=self._vertices,
            rows=self._rows,
        )
        self._sums.spread_model(model)
        return model

    @property
    def _compressing(self) -> Compressing:
        return cast("Compressing", self.remote.transport)

    @property
    def epsilon(self) -> float:
        """The largest change of a cached row that is not sent, as for ``wrap``.

        You may set it between two calls of the model, on each worker to a value of its own.
        """
        return self._compressing.epsilon

    @epsilon.setter
    def epsilon(self, epsilon: float) -> None:
        self._compressing.epsilon = epsilon

    def note_accuracy(self, share: float) -> None:
        """Pass on an epoch's training accuracy, 0 to 1, for ``wrap(..., cache="auto")``."""
        if self._cache is not None:
            self._cache.note(share)

    def mean(
        self, total: Tensor, count: int | None = None, *, dim: Literal[0] | None = None
    ) -> Tensor:
        """Return this worker's share of a mean over all workers; with `dim`, a mean over vertices.

        Args:
            total: [] or [1], a sum over this worker's vertices, or their labels; with `dim`, [n,
                ...], one row per vertex of this worker.
            count: the divisor, the same on all workers; None: the number of training vertices,
                times the classes if the data set is multi-label. A job without labels needs it.
            dim: 0, for what ``total.mean(0)`` is in one process.

        Returns:
            The share; all add up to the mean, and their gradients to its gradient. With `dim`,
            [...], the mean on every worker; its gradients reach the rows of all of them.

        Raises:
            TrainingError: the job has no labels, and there is neither `count` nor `dim`.
        """
        if dim is not None:
            number, rows, _ = self._vertices.moments(self._vertices.of_own(total))
            return (rows / number).to(total.dtype)
        if count is None:
            if not self.job.train:
                raise TrainingError(
                    "The job has no labels, so a mean has no training vertices to divide by: "
                    "give count."
                )
            count = self.job.train * (self.classes if self.job.multilabel else 1)
        return total / count

    def reduce(self, model: nn.Module, loss: Tensor | None = None) -> float:
        """Replace the gradients of a model by their sums over all workers.

        Args:
            model: after `backward`, on all workers.
            loss: this worker's share of the loss, which is sent with the gradients.

        Returns:
            The sum of the losses of all workers; 0 without any.
        """
        share = torch.zeros(1) if loss is None else loss.detach().reshape(1)
        (total,) = self._sums.add_with_gradients(model, share)
        return total

    def spread(self, model: nn.Module) -> None:
        """Give all workers the weights and buffers of worker 0, as after ``reset_parameters()``."""
        self._sums.spread_model(model)

    def sum(self, values: Tensor, *, dim: Literal[0] | None = None) -> Tensor:
        """Return the sums of values over all workers; gradients reach the values of all of them.

        Args:
            values: [...] of any type; with `dim`, [n, ...], one row per vertex of this worker.
            dim: 0, for what ``values.sum(0)`` is in one process.

        Returns:
            [...] of the same type.
        """
        own = values[None] if dim is None else self._vertices.of_own(values)
        _, sums, _ = self._vertices.moments(own)
        return sums.to(values.dtype)

    def rows(self, h: Tensor, ids: Tensor) -> Tensor:
        """Return rows of any vertices, as ``h[ids]`` does in one process.

        All workers must call it, and run backward through the result, the same number of times,
        each with ids of its own or none. Gradients reach the rows of all workers, and can be
        differentiated again.

        Args:
            h: [n, ...], one row per vertex of this worker, of any type, on any device.
            ids: int64[...], vertices of the whole graph, also repeated ones.

        Returns:
            [*ids.shape, ...], of the type and on the device of `h`.

        Raises:
            TrainingError: `h` does not have one row per vertex, or an id is no vertex.
        """
        return self._rows.take(h, ids)

    def gather(self, rows: Tensor) -> Tensor | None:
        """Return the rows of all vertices in the order of their ids.

        Args:
            rows: [n, ...], one row per vertex of this worker.

        Returns:
            [V, ...] on worker 0 and its CPU, None on the others.
        """
        ids = torch.arange(0 if self.number else self.job.vertices)
        whole = self._rows.take(rows.detach().cpu(), ids)
        return None if self.number else whole


def _data_of(partition: Partition) -> Data:
    weights = partition.edge_weights
    data = Data(
        x=torch.from_numpy(partition.features),
        y=torch.from_numpy(partition.labels),
        edge_index=torch.from_numpy(partition.edges),
        train_mask=torch.from_numpy(partition.train),
        val_mask=torch.from_numpy(partition.validation),
        test_mask=torch.from_numpy(partition.test),
        n_id=torch.from_numpy(partition.vertices),
        **({} if weights is None else {"edge_weight": torch.from_numpy(weights)}),
    )
    for name in () if partition.classes else ("y", "train_mask", "val_mask", "test_mask"):
        del data[name]
    return data


@contextmanager
def join(
    job: str | Path,
    *,
    network: str | Path,
    session: int | None = None,
    pace: Pace | None = None,
    faults: str = "",
    seed: int = 0,
    timeout: float | None = None,
    transport: str = SWITCH.name,
) -> Iterator[Worker]:
    """Join a job as one of its workers; torchrun starts the processes.

    The process becomes the worker whose interface in the network file, with its MAC, is on this
    machine; of several processes there, torchrun's local rank decides. If no worker or several have
    an interface here, the rank is the worker's number. Worker 0 opens a new session on the
    switches, so its machine must reach their P4Runtime. The worker serves metrics if the network
    file has an address for them.

    An error of SwitchGNN that the script does not catch ends it with one sentence; set
    SWITCHGNN_TRACEBACK to see the traceback.

    Args:
        job: its folder, as written by ``write_job`` or `switchgnn plan --parts`.
        network: the network file; under `switchgnn launch`, that of its network counts instead.
        session: of an existing install; None: worker 0 opens one.
        pace: the limits of sending and waiting.
        faults: faults to inject on this worker's link, as for `--faults`.
        seed: of dropout, the same on all workers.
        timeout: how many seconds a worker waits for others that compute; None: those of `pace`, by
            default 200. Workers that make different calls, or leave, are found within seconds.
        transport: `switch`, or one of the `transports` that the job was written with, the same on
            all workers.

    Yields:
        The worker.

    Raises:
        JobError: the job does not exist, was not written for the transport, or does not fit the
            number of workers or the network's leaves and spines; RANK or WORLD_SIZE is missing; or
            two processes are the same worker.
        NetworkError: the network file cannot be used.
        SwitchGNNError: any other failure of the worker.
    """
    if timeout is not None:
        pace = pace or Pace()
        silence = min(pace.timeout, timeout)
        pace = replace(pace, timeout=silence, skew=timeout - silence)
    options: dict[str, Any] = {"pace": pace, "faults": faults, "seed": seed, "session": session}
    with (
        told_in_a_sentence(),
        join_job(job, network=network, transport=transport, **options) as joined,
        sums_over(joined.transport, binned=joined.binned) as remote,
    ):
        number, workers = joined.partition.worker, joined.partition.workers
        # The processes of a machine compare their calls themselves.
        remote.steps = SharedSteps(
            number, workers, joined.session if joined.machine is None else None
        )
        view = view_of(number, joined.transport, remote)
        with serving_metrics(joined.metrics, view):
            yield Worker(joined, remote, seed)
