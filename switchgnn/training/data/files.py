# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Data sets from a user's own files."""

from dataclasses import replace
from pathlib import Path

from switchgnn.planner.graphs.edge_list import load_edge_list
from switchgnn.training.data.dataset import Dataset, dataset_from_graph, normalize_rows
from switchgnn.training.data.read_features import read_features
from switchgnn.training.data.read_labels import read_labels
from switchgnn.training.data.read_split import read_split
from switchgnn.training.data.split import split_vertices


def load_files(
    edges: str | Path,
    node_features: str | Path,
    labels: str | Path,
    *,
    split: str | Path | None = None,
    label_column: str | None = None,
    directed: bool = False,
    normalize_features: bool = False,
    name: str | None = None,
    seed: int = 0,
) -> Dataset:
    """Load an edge list with features and labels; docs/training.md shows the formats.

    If the ids of the edge list had to be renumbered, `graph.original_ids` holds them; the
    other files use the ids of the edge list.

    Args:
        edges: the edge list; see load_edge_list of the planner.
        node_features: .npy, .csv or .json; see read_features.
        labels: .npy, .csv or text; see read_labels.
        split: .csv or text, see read_split; None splits at random, see split_vertices.
        label_column: the column of the labels; None is the last one.
        directed: whether edges are taken in the given direction only.
        normalize_features: whether each row of the features is made to sum to 1.
        name: the name of the data set; None takes it from the edge list's file.
        seed: the seed of the random split.

    Returns:
        The data set.

    Raises:
        SwitchGNNError: an unreadable file, bad content, or files that do not fit together.
    """
    graph = load_edge_list(Path(edges), directed=directed)
    features = read_features(Path(node_features), graph)
    classes = read_labels(Path(labels), graph, label_column)
    return dataset_from_graph(
        graph if name is None else replace(graph, name=name),
        features=normalize_rows(features) if normalize_features else features,
        labels=classes,
        split=split_vertices(classes, seed) if split is None else read_split(Path(split), graph),
    )
