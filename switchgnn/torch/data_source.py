# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Data sets from whatever a script has them in."""

from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.planner.graphs.graph import graph_from_edges
from switchgnn.torch.errors import JobError
from switchgnn.training.data.dataset import Dataset, dataset_from_graph
from switchgnn.training.data.load import load_dataset
from switchgnn.training.data.split import Split

_NEEDS = ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask")


def dataset_of(source: Any, *, name: str = "data") -> Dataset:  # noqa: ANN401 - PyG has no types
    """Return a data set.

    Args:
        source: a ``Data`` of PyTorch Geometric with features, labels and masks; a PyG or OGB data
            set with one of them; or a name, or a file, that `switchgnn train --data` takes.
        name: what messages call a ``Data``.

    Raises:
        JobError: it is none of these.
        DatasetError: it lacks something, or does not belong together.
    """
    if isinstance(source, Dataset):
        return source
    if isinstance(source, str | Path):
        return load_dataset(str(source))
    if not hasattr(source, "edge_index") and hasattr(source, "__getitem__"):
        name = getattr(source, "name", None) or type(source).__name__.lower()
        source = source[0]
    return _of_pyg(source, name)


def _of_pyg(data: Any, name: str) -> Dataset:  # noqa: ANN401
    missing = [each for each in _NEEDS if getattr(data, each, None) is None]
    if missing:
        raise JobError(
            f"The data set {name} has no {missing[0]}: it must be a Data of PyTorch Geometric with "
            f"{', '.join(_NEEDS)}."
        )
    source, destination = data.edge_index.cpu().numpy()
    labels = data.y.cpu().numpy()
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    graph = graph_from_edges(source, destination, name=name, vertices=len(labels), directed=True)
    masks = [getattr(data, each).cpu().numpy() for each in _NEEDS[3:]]
    return dataset_from_graph(
        graph,
        features=data.x.cpu().numpy().astype(np.float32, copy=False),
        labels=labels.astype(np.float32 if labels.ndim == 2 else np.int64, copy=False),
        split=Split(*masks),
    )
