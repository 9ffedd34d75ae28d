"""Trains GraphSAGE with SAR (https://github.com/IntelLabs/SAR); runs in an environment with SAR.

``python sar_worker.py FOLDER`` reads FOLDER/input.npz and writes FOLDER/output.npz. The ids of a
worker's vertices follow each other, those of worker 0 first. The model, the loss and the loop are
those of SAR's example of a homogeneous graph; SAR's settings are its defaults.
"""

import os
import sys
import time
from itertools import pairwise

import dgl
import numpy as np
import sar
import torch
import torch.distributed as dist
from dgl.distributed.graph_partition_book import RangePartitionBook
from sar.common_tuples import PartitionData, ShardEdgesAndFeatures
from torch import nn
from torch.nn import functional

_VERTEX, _EDGE = "_N", ("_N", "_E", "_N")


class _Sage(nn.Module):
    def __init__(self, widths: list[int]) -> None:
        super().__init__()
        pairs = pairwise(widths)
        self.layers = nn.ModuleList(dgl.nn.SAGEConv(*pair, "mean") for pair in pairs)

    def forward(self, graph: sar.HeteroGraphShardManager, rows: torch.Tensor) -> torch.Tensor:
        for layer in self.layers[:-1]:
            rows = functional.relu(layer(graph, rows))
        return self.layers[-1](graph, rows)


def _partition(data: dict[str, np.ndarray], rank: int) -> PartitionData:
    """Return what SAR loads from a file that DGL has written."""
    starts, edges = data["starts"], data["edges"]
    ranges = np.stack((starts[:-1], starts[1:]), axis=1)
    owner, target = np.searchsorted(starts, edges, "right") - 1
    shards = []
    for worker in range(len(ranges)):
        ends = torch.from_numpy(edges[:, (owner == worker) & (target == rank)])
        kinds = {dgl.ETYPE: torch.zeros(ends.shape[1], dtype=torch.int32)}
        shards.append(ShardEdgesAndFeatures((ends[0], ends[1]), kinds))
    into = np.searchsorted(np.sort(edges[1]), starts)
    book = RangePartitionBook(
        *(rank, len(ranges), {_VERTEX: torch.from_numpy(ranges)}),
        {_EDGE: torch.from_numpy(np.stack((into[:-1], into[1:]), axis=1))},
        *({_VERTEX: 0}, {_EDGE: 0}),
    )
    rows = int(starts[rank + 1] - starts[rank])
    kinds = {dgl.NTYPE: torch.zeros(rows, dtype=torch.int32)}
    return PartitionData(shards, list(map(tuple, ranges.tolist())), kinds, [_VERTEX], [_EDGE], book)


def _model(data: dict[str, np.ndarray]) -> _Sage:
    model = _Sage(data["widths"].tolist())
    with torch.no_grad():
        for index, layer in enumerate(model.layers):
            layer.fc_neigh.weight.copy_(torch.from_numpy(data[f"neighbours{index}"]))
            layer.fc_self.weight.copy_(torch.from_numpy(data[f"root{index}"]))
            layer.fc_self.bias.copy_(torch.from_numpy(data[f"bias{index}"]))
    return model


def _counting() -> list[int]:
    """Count the bytes that SAR sends to other workers from now on, in the list's one element."""
    sent, send = [0], dist.isend

    def counted(tensor: torch.Tensor, worker: int) -> dist.Work | None:
        sent[0] += tensor.numel() * tensor.element_size()
        return send(tensor, worker)

    dist.isend = counted
    return sent


def _work(rank: int, folder: str) -> None:
    with np.load(f"{folder}/input.npz") as file:
        data = dict(file)
    workers, epochs = len(data["starts"]) - 1, int(data["epochs"])
    # As `switchgnn train` does.
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // workers))
    dist.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=workers)
    sar.initialize_comms(rank, workers, "127.0.0.1", "gloo")
    graph = sar.construct_full_graph(_partition(data, rank))
    own = slice(*data["starts"][rank : rank + 2])
    features, labels, train = (
        torch.from_numpy(data[name][own]) for name in ("features", "labels", "train")
    )
    total, model, sent = int(data["train"].sum()), _model(data), _counting()
    optimizer = torch.optim.Adam(model.parameters(), lr=float(data["rate"]))
    seconds, losses = [], []
    for _ in range(epochs):
        started = time.perf_counter()
        outputs = model(graph, features)
        loss = functional.cross_entropy(outputs[train], labels[train], reduction="sum") / total
        optimizer.zero_grad()
        loss.backward()
        sar.gather_grads(model)
        optimizer.step()
        seconds.append(time.perf_counter() - started)
        losses.append(float(loss.detach()))
    found = torch.tensor([losses, [sent[0] / epochs] * epochs], dtype=torch.float64)
    dist.all_reduce(found)
    slowest = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    if rank == 0:
        np.savez(f"{folder}/output.npz", losses=found[0], sent=found[1, 0], seconds=slowest)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    count = len(np.load(f"{sys.argv[1]}/input.npz")["starts"]) - 1
    torch.multiprocessing.spawn(_work, (sys.argv[1],), count)
