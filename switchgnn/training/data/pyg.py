# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Data sets that PyTorch Geometric's loaders read or download.

PyTorch Geometric takes a second to import, so the functions import it when called.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.planner.graphs.graph import graph_from_edges
from switchgnn.training.data.dataset import Dataset, dataset_from_graph
from switchgnn.training.data.outside import folder_of, load_outside
from switchgnn.training.data.split import Split

_PACKAGE: Mapping[str, str] = {"package": "torch_geometric", "extra": "training"}


def download_planetoid(name: str, root: Path) -> None:
    """Download the files ind.NAME.* to root/NAME/raw.

    Raises:
        DatasetError: no PyTorch Geometric, or no network.
    """

    def load() -> None:
        from torch_geometric.datasets import Planetoid  # noqa: PLC0415

        Planetoid(str(root), name)

    files = f"the eight files ind.{name}.*"
    load_outside(name, root / name / "raw", load, files=files, **_PACKAGE)


def load_reddit(root: Path) -> Dataset:
    """Load Reddit: 232,965 posts, 602 features, 41 classes.

    Raises:
        DatasetError: no PyTorch Geometric, no network, or damaged files.
    """
    folder = folder_of("reddit", root, "reddit_graph.npz")

    def load() -> Dataset:
        from torch_geometric.datasets import Reddit  # noqa: PLC0415

        return _dataset("reddit", Reddit(str(folder))[0])

    files = "reddit_data.npz and reddit_graph.npz"
    return load_outside("reddit", folder / "raw", load, files=files, **_PACKAGE)


def load_yelp(root: Path) -> Dataset:
    """Load Yelp: 716,847 reviewers, 300 features, any of 100 classes.

    Raises:
        DatasetError: no PyTorch Geometric, no network, or damaged files.
    """
    folder = folder_of("yelp", root, "adj_full.npz")

    def load() -> Dataset:
        from torch_geometric.datasets import Yelp  # noqa: PLC0415

        return _dataset("yelp", Yelp(str(folder))[0])

    files = "adj_full.npz, feats.npy, class_map.json and role.json"
    return load_outside("yelp", folder / "raw", load, files=files, **_PACKAGE)


def _dataset(name: str, data: Any) -> Dataset:  # noqa: ANN401 - a Data, which has no types
    source, destination = data.edge_index.numpy()
    labels = data.y.numpy()
    multilabel = labels.ndim == 2
    graph = graph_from_edges(source, destination, name=name, vertices=len(labels), directed=True)
    return dataset_from_graph(
        graph,
        features=data.x.numpy().astype(np.float32, copy=False),
        labels=labels.astype(np.float32 if multilabel else np.int64, copy=False),
        split=Split(
            train=data.train_mask.numpy(),
            validation=data.val_mask.numpy(),
            test=data.test_mask.numpy(),
        ),
    )
