# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Cora, Citeseer and Pubmed with their public split."""

from pathlib import Path

from switchgnn.planner.graphs import planetoid
from switchgnn.training.data.dataset import Dataset, dataset_from_graph
from switchgnn.training.data.split import split_of_codes


def find_planetoid(name: str, root: Path) -> Path | None:
    """Return the folder that holds ind.NAME.graph: root, root/raw or root/NAME/raw; or None.

    The case of NAME in root/NAME does not matter.
    """
    named = [path / "raw" for path in root.glob("*") if path.name.lower() == name]
    for folder in (root, root / "raw", *sorted(named)):
        if (folder / f"ind.{name}.graph").is_file():
            return folder
    return None


def read_planetoid(name: str, folder: Path) -> Dataset:
    """Read ind.NAME.* without executing the pickles in these files.

    Raises:
        PlannerError: a file is missing or does not hold what it should.
    """
    graph = planetoid.load_planetoid(folder, name)
    assert graph.features is not None  # noqa: S101 - a Planetoid graph has all three
    assert graph.labels is not None  # noqa: S101
    assert graph.split is not None  # noqa: S101
    return dataset_from_graph(
        graph, features=graph.features, labels=graph.labels, split=split_of_codes(graph.split)
    )
