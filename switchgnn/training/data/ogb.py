# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""ogbn-products, by the loader of the Open Graph Benchmark."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.graphs.graph import (
    SPLIT_NONE,
    SPLIT_TEST,
    SPLIT_TRAIN,
    SPLIT_VALIDATION,
    graph_from_edges,
)
from switchgnn.training.data.dataset import Dataset, dataset_from_graph
from switchgnn.training.data.dataset_file import read_dataset, write_dataset
from switchgnn.training.data.outside import load_outside
from switchgnn.training.data.split import split_of_codes
from switchgnn.training.errors import DatasetError

NAME = "ogbn-products"
# The folder that OGB uses below the root, and our file in it, which is read the next time.
FOLDER, KEPT = "ogbn_products", "switchgnn.base.arrays"
# The file that OGB itself keeps, which is a pickle.
OGB_KEPT = Path("processed", "data_processed")
_PARTS = {"train": SPLIT_TRAIN, "valid": SPLIT_VALIDATION, "test": SPLIT_TEST}


def load_products(root: Path) -> Dataset:
    """Load ogbn-products: 2,449,029 products, 100 features, 47 classes.

    OGB reads the files of root/ogbn_products, or asks and downloads them. Its result is
    kept in an archive of plain arrays, because PyTorch refuses OGB's own pickle since 2.6.

    Raises:
        DatasetError: no OGB, no network, damaged files, or a download that was declined.
    """
    folder = root / FOLDER
    if (folder / KEPT).is_file():
        return read_dataset(folder / KEPT)
    if (folder / OGB_KEPT).exists():
        raise DatasetError(
            f"{folder / OGB_KEPT} is a pickle that OGB made, which is not read because that "
            "could run code; delete it, and it will be made again from the files in raw"
        )

    def load() -> Dataset:
        from ogb.nodeproppred import NodePropPredDataset  # noqa: PLC0415 - optional, and slow

        loader = NodePropPredDataset(name=NAME, root=str(root))
        return _dataset(loader[0], loader.get_idx_split())

    files = "the content of OGB's products.zip"
    data = load_outside(NAME, folder, load, files=files, package="ogb", extra="ogb")
    write_dataset(data, folder / KEPT)
    return data


def _dataset(content: Any, parts: Any) -> Dataset:  # noqa: ANN401 - OGB has no types
    found, labels = content
    source, destination = found["edge_index"]
    vertices = int(found["num_nodes"])
    codes = np.full(vertices, SPLIT_NONE, dtype=np.int8)
    for part, code in _PARTS.items():
        codes[parts[part]] = code
    features: NDArray[np.float32] = found["node_feat"].astype(np.float32, copy=False)
    return dataset_from_graph(
        graph_from_edges(source, destination, name=NAME, vertices=vertices, directed=True),
        features=features,
        labels=labels.reshape(vertices).astype(np.int64, copy=False),
        split=split_of_codes(codes),
    )
