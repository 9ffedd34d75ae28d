"""Training: data sets, and the part of them that each worker holds."""

from switchgnn.planner.graphs.graph import UNLABELLED
from switchgnn.training.base.errors import DatasetError
from switchgnn.training.data.dataset import Dataset, Split, dataset_from_graph, split_vertices
from switchgnn.training.data.load import DATASETS, load_dataset
from switchgnn.training.data.partition import (
    Partition,
    partition_dataset,
    read_partition,
    write_partitions,
)
from switchgnn.training.data.read import load_files

__all__ = [
    "DATASETS",
    "UNLABELLED",
    "Dataset",
    "DatasetError",
    "Partition",
    "Split",
    "dataset_from_graph",
    "load_dataset",
    "load_files",
    "partition_dataset",
    "read_partition",
    "split_vertices",
    "write_partitions",
]
