"""Trains GraphSAGE with BNS-GCN (https://github.com/GATECH-EIC/BNS-GCN); runs in a Python with DGL.

``BNS_GCN=CHECKOUT python bns_worker.py FOLDER`` reads FOLDER/input.npz and writes
FOLDER/output.npz. The ids of a worker's vertices follow each other, those of worker 0 first. The
model, the exchange and the loop are those of `train.run`, with all boundary vertices sampled,
without dropout and norms, and with kept sums of the features, which its buffer requires. This
differs from a run of its `main.py`:

- All calls of CUDA do nothing, since the other systems train on the CPU, too.
- Layers after the first have one bias instead of two, which Adam would change twice as fast.
- A gradient is reduced after PyTorch has stored it. Its own hook runs before, and then a fast
  reduction finds no `parameter.grad`, and the workers go on with different weights.
- Workers may share no edge, and vertices may have none.
"""

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import dgl
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

# What it imports for data sets and scores.
_UNUSED = "ogb", "ogb.nodeproppred", "sklearn", "sklearn.metrics", "sklearn.preprocessing"


def _replace(owner: Any, **named: Any) -> None:  # noqa: ANN401
    for name, value in named.items():
        setattr(owner, name, value)


def _stay_on_the_cpu() -> None:
    """Let tensors and graphs stay where they are, and streams do nothing."""

    def stays(moved: Any, *_: Any, **__: Any) -> Any:  # noqa: ANN401
        return moved

    def placed(make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*values: Any, device: Any = None, pin_memory: Any = None, **more: Any) -> Any:  # noqa: ANN401
            return make(*values, **more)

        return made

    for owner, name in ((torch.Tensor, "cuda"), (nn.Module, "cuda"), (dgl.DGLGraph, "to")):
        setattr(owner, name, stays)
    for name in ("zeros", "zeros_like", "as_tensor"):
        setattr(torch, name, placed(getattr(torch, name)))
    stream = SimpleNamespace(wait_stream=lambda _: None)
    _replace(torch.cuda, Stream=lambda device: stream, current_stream=lambda: stream)
    _replace(torch.cuda, stream=nullcontext, reset_peak_memory_stats=lambda: None)


def _loaded(rows: int, data: dict[str, np.ndarray]) -> Any:  # noqa: ANN401
    """Import `train` of the checkout, and change it for a worker with that many rows."""
    unused = [name for name in _UNUSED if name not in sys.modules]
    sys.modules.update((name, MagicMock()) for name in unused)
    sys.path.insert(0, os.environ["BNS_GCN"])
    train: Any = import_module("train")
    for name in unused:
        del sys.modules[name]
    create, build = train.create_model, dgl.heterograph

    def built(edges: Any) -> Any:  # noqa: ANN401
        graph = build(edges)
        graph.add_nodes(rows - graph.num_nodes("_V"), ntype="_V")
        return graph

    def reduce_hook(parameter: Any, name: str, total: int) -> Callable[..., None]:  # noqa: ANN401
        stored = lambda _: train.ctx.reducer.reduce(parameter, name, parameter.grad, total)  # noqa: E731
        parameter.register_post_accumulate_grad_hook(stored)
        return lambda _: None

    def send_size(boundary: list[torch.Tensor | None], _: float) -> tuple[list[int], list[float]]:
        return [0 if each is None else len(each) for each in boundary], [1.0] * len(boundary)

    _replace(dgl, heterograph=built)
    _replace(train, reduce_hook=reduce_hook, get_send_size=send_size, print_memory=lambda _: None)
    _replace(train, create_model=lambda *options: _with_first_weights(create(*options), data))
    return train


def _with_first_weights(model: Any, data: dict[str, np.ndarray]) -> Any:  # noqa: ANN401
    with torch.no_grad():
        for index, layer in enumerate(model.layers):
            root, neighbours, bias = (
                torch.from_numpy(data[f"{name}{index}"]) for name in ("root", "neighbours", "bias")
            )
            if index == 0:
                # It maps the row of a vertex beside the mean of its neighbours' rows.
                layer.linear.weight.copy_(torch.cat((root, neighbours), dim=1))
                layer.linear.bias.copy_(bias)
            else:
                layer.linear1.weight.copy_(root)
                layer.linear1.bias = None
                layer.linear2.weight.copy_(neighbours)
                layer.linear2.bias.copy_(bias)
    return model


def _partition(data: dict[str, np.ndarray], rank: int) -> tuple[Any, dict[str, torch.Tensor], Any]:
    """Return what BNS-GCN loads from files that DGL has written."""
    starts, (sources, targets) = data["starts"], data["edges"]
    first, end = starts[rank : rank + 2]
    into = (targets >= first) & (targets < end)
    own = np.arange(first, end)
    vertices = np.concatenate((own, np.setdiff1d(sources[into], own)))
    local = np.empty(starts[-1], np.int64)
    local[vertices] = np.arange(len(vertices))
    ends = tuple(torch.from_numpy(local[each[into]]) for each in (sources, targets))
    degrees = [np.bincount(each, minlength=starts[-1])[first:end] for each in (sources, targets)]
    found = {
        dgl.NID: vertices,
        "part_id": np.searchsorted(starts, vertices, "right") - 1,
        "inner_node": np.arange(len(vertices)) < len(own),
        "out_deg": degrees[0],
        # The mean of no rows is 0.
        "in_deg": np.maximum(degrees[1], 1),
        **{"feat": data["features"][own], "label": data["labels"][own]},
        "train_mask": data["train"][own],
    }
    book = SimpleNamespace(partid2nids=lambda part: torch.arange(*starts[part : part + 2]))
    graph = dgl.graph(ends, num_nodes=len(vertices))
    return graph, {name: torch.from_numpy(rows) for name, rows in found.items()}, book


def _observed() -> tuple[list[float], list[tuple[float, int]]]:
    """Collect the losses, and the time and the bytes sent until the end of each epoch."""
    losses: list[float] = []
    ends, sent, send = [(time.perf_counter(), 0)], [0], dist.isend

    def counted(tensor: torch.Tensor, dst: int, tag: int = 0) -> dist.Work | None:
        sent[0] += tensor.numel() * tensor.element_size()
        return send(tensor, dst, tag=tag)

    def made(module: nn.Module, _: Any, output: torch.Tensor) -> None:  # noqa: ANN401
        if isinstance(module, nn.CrossEntropyLoss):
            losses.append(float(output.detach()))

    _replace(dist, isend=counted)
    register_module_forward_hook(made)
    register_optimizer_step_post_hook(lambda *_: ends.append((time.perf_counter(), sent[0])))
    return losses, ends


def _work(rank: int, folder: str) -> None:
    with np.load(f"{folder}/input.npz") as file:
        data = dict(file)
    starts, widths, total = data["starts"], data["widths"].tolist(), int(data["train"].sum())
    workers, epochs = len(starts) - 1, int(data["epochs"])
    # As `switchgnn train` does.
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // workers))
    _stay_on_the_cpu()
    train = _loaded(int(starts[rank + 1] - starts[rank]), data)
    # BNS-GCN makes two folders where it runs.
    os.chdir(folder)
    dist.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=workers)
    options = Namespace(
        **{"dataset": "", "model": "graphsage", "norm": None, "dropout": 0.0, "use_pp": True},
        **{"n_feat": widths[0], "n_hidden": widths[1], "n_class": widths[-1], "n_train": total},
        **{"n_layers": len(widths) - 1, "n_linear": 0, "sampling_rate": 1.0, "backend": "gloo"},
        **{"n_epochs": epochs, "log_every": epochs + 1, "eval": False, "n_partitions": workers},
        **{"lr": float(data["rate"]), "weight_decay": 0.0, "seed": 0},
    )
    losses, ends = _observed()
    train.run(*_partition(data, rank), options)
    # The first epoch begins with preparations, which send something once.
    seconds, sent = np.diff(ends, axis=0).T
    found = torch.tensor(np.stack((np.array(losses) / total, np.full(epochs, sent[1:].mean()))))
    dist.all_reduce(found)
    slowest = torch.tensor(seconds)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    if rank == 0:
        np.savez(f"{folder}/output.npz", losses=found[0], sent=found[1, 0], seconds=slowest)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    count = len(np.load(f"{sys.argv[1]}/input.npz")["starts"]) - 1
    import_module("torch.multiprocessing").spawn(_work, (str(Path(sys.argv[1]).resolve()),), count)
