# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Data sets from whatever a script has them in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.graphs.graph import graph_from_edges
from switchgnn.torch.errors import JobError
from switchgnn.training.data.dataset import Dataset, dataset_from_graph
from switchgnn.training.data.load import load_dataset
from switchgnn.training.data.split import Split

_TENSORS = ("x", "edge_index", "y")
_MASKS = ("train_mask", "val_mask", "test_mask")
# As OGB calls what the masks say.
_SPLITS = ("train", "valid", "test")


def dataset_of(source: Any, *, name: str = "data") -> Dataset:  # noqa: ANN401 - PyG has no types
    """Return a data set.

    Args:
        source: a ``Data`` of PyTorch Geometric with features, labels and masks; a PyG data set
            with one of them, or an OGB one, which has splits in place of masks; or a name, or a
            file, that `switchgnn train --data` takes.
        name: what messages call a ``Data``.

    Raises:
        JobError: it is none of these.
        DatasetError: it lacks something, or does not belong together.
    """
    if isinstance(source, Dataset):
        return source
    if isinstance(source, str | Path):
        return load_dataset(str(source))
    if hasattr(source, "edge_index") or not hasattr(source, "__getitem__"):
        return _of_pyg(source, name, None)
    name = getattr(source, "name", None) or type(source).__name__.lower()
    found = source[0]
    split = getattr(source, "get_idx_split", None)
    return _of_pyg(found, name, None if split is None else _masks(split(), found, name))


def _masks(split: Mapping[str, Any], data: Any, name: str) -> list[NDArray[np.bool_]]:  # noqa: ANN401
    """Return the masks of an OGB data set, which names the vertices of each split."""
    missing = [each for each in _SPLITS if each not in split]
    if missing:
        raise JobError(f"The data set {name} has no split {missing[0]!r}.")
    masks = []
    for each in _SPLITS:
        mask = np.zeros(len(data.y), dtype=np.bool_)
        mask[np.asarray(split[each])] = True
        masks.append(mask)
    return masks


def _of_pyg(data: Any, name: str, masks: list[NDArray[np.bool_]] | None) -> Dataset:  # noqa: ANN401
    needs = _TENSORS if masks is not None else (*_TENSORS, *_MASKS)
    missing = [each for each in needs if getattr(data, each, None) is None]
    if missing:
        raise JobError(
            f"The data set {name} has no {missing[0]}: it must be a Data of PyTorch Geometric with "
            f"{', '.join(needs)}."
        )
    source, destination = data.edge_index.cpu().numpy()
    labels = data.y.cpu().numpy()
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    graph = graph_from_edges(source, destination, name=name, vertices=len(labels), directed=True)
    if masks is None:
        masks = [getattr(data, each).cpu().numpy() for each in _MASKS]
    return dataset_from_graph(
        graph,
        features=data.x.cpu().numpy().astype(np.float32, copy=False),
        labels=labels.astype(np.float32 if labels.ndim == 2 else np.int64, copy=False),
        split=Split(*masks),
    )
