"""The input of training: a graph with features, labels and a split."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Bools, Float32s, Int64s, Integers
from switchgnn.base.arrays import ArrayKind
from switchgnn.planner.base.arrays import is_symmetric
from switchgnn.planner.graphs.graph import (
    SPLIT_TEST,
    SPLIT_TRAIN,
    SPLIT_VALIDATION,
    UNLABELLED,
    Graph,
    graph_from_edges,
    why_no_features,
)
from switchgnn.planner.partition.vertex_cut import ReplicaGraph
from switchgnn.planner.presets import PlanRequest
from switchgnn.training.base.errors import DatasetError
from switchgnn.training.data.weights import exchanged_graph, factors_of

# All vertices of a smaller class are for training.
SMALLEST_SPLIT_CLASS = 3
# Of the vertices of a class, those that validate, and as many that test.
_SHARE = 0.2
# A model has weights for each class, so a wrong number could take all memory.
MOST_CLASSES = 1 << 20


@dataclass(frozen=True, eq=False)
class Split:
    """Three masks, bool[V] each; no vertex is in two of them, some may be in none."""

    train: Bools
    validation: Bools
    test: Bools


def split_of_codes(codes: NDArray[np.int8]) -> Split:
    """Return the masks of a Graph's split, int8[V]."""
    return Split(
        train=codes == SPLIT_TRAIN, validation=codes == SPLIT_VALIDATION, test=codes == SPLIT_TEST
    )


def split_vertices(labels: Int64s | Float32s, seed: int) -> Split:
    """Split at random; the same labels and seed give the same split.

    A fifth of the vertices validates, another fifth tests, and the others train. Labels of one
    dimension are split class by class: each class of at least 3 vertices has some in all three
    parts, smaller classes only train, and vertices with a negative label are in no part.
    Multi-label vertices are split like a single class.

    Args:
        labels: int64[V], or [V, C] if multi-label.
        seed: at least 0.

    Returns:
        The split.

    Raises:
        DatasetError: a negative seed.
    """
    if seed < 0:
        raise DatasetError(f"{seed} is not a seed for a split; give a whole number from 0.")
    groups = labels if labels.ndim == 1 else np.zeros(len(labels), dtype=np.int64)
    random = np.random.default_rng(seed)
    codes = np.zeros(len(groups), dtype=np.int8)
    for group in np.unique(groups[groups >= 0]):
        members = random.permutation(np.flatnonzero(groups == group))
        held = max(1, int(_SHARE * len(members) + 0.5))
        if len(members) < SMALLEST_SPLIT_CLASS:
            held = 0
        codes[members] = SPLIT_TRAIN
        codes[members[:held]] = SPLIT_VALIDATION
        codes[members[held : 2 * held]] = SPLIT_TEST
    return split_of_codes(codes)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A graph with everything that training needs; V vertices, F features, C classes.

    Raises:
        DatasetError: the arrays do not have this form.
    """

    # the graph without self-loops; edge u→v says that u contributes to v. It may have weights.
    graph: Graph
    features: Float32s  # float32[V, F], finite
    # int64[V], 0 <= class < C or UNLABELLED; or, for any number of classes per vertex,
    # float32[V, C] or bool[V, C] of zeros and ones
    labels: Int64s | Float32s | Bools
    # bool[V], disjoint; at least one vertex trains, if there are classes
    train: Bools
    validation: Bools
    test: Bools
    classes: int  # the number of classes, C; 0: no vertex has a label, or is in the split
    cut: ReplicaGraph | None = None  # of a vertex cut over workers; None: edges are cut

    def __post_init__(self) -> None:
        if why := why_no_features(self.features, self.vertices):
            raise DatasetError(f"Data set {self.name} {why}.")
        _check_labels(self)
        _check_masks(self)

    @property
    def name(self) -> str:
        """The name of the data set in messages, that of the graph."""
        return self.graph.name

    @property
    def vertices(self) -> int:
        """The number of vertices, V."""
        return self.graph.vertices

    @property
    def multilabel(self) -> bool:
        """Whether a vertex may have any number of the classes."""
        return self.labels.ndim == 2

    @property
    def self_loops(self) -> Int64s:
        """The vertices that had a self-loop in the input, int64[L], ascending."""
        loops = self.graph.self_loops
        return np.zeros(0, np.int64) if loops is None else loops

    @cached_property
    def undirected(self) -> bool:
        """Whether each edge exists in both directions."""
        return is_symmetric(self.graph.indptr, self.graph.indices)

    @cached_property
    def factors(self) -> Float32s | None:
        """See `factors_of`; None: there are none, or no weights."""
        return None if self.graph.weights is None else factors_of(self.graph)

    def cut_for(self, request: PlanRequest, workers: int, seed: int) -> "Dataset":
        """Cut the vertices, if that is what the partition says.

        Args:
            request: asks for the partition.
            workers: their number.
            seed: of the partition.

        Returns:
            The same data set, with `cut` if one is asked for.
        """
        graph = request.cut(self.graph, workers, seed)
        return replace(self, cut=graph) if isinstance(graph, ReplicaGraph) else self

    def exchanged(self, assignment: Integers | None) -> tuple[Graph, Integers | None]:
        """Return the graph whose plan carries the sums, and its assignment: see exchanged_graph."""
        if self.cut is not None:
            return self.cut, self.cut.worker
        return exchanged_graph(self.graph, assignment, self.factors)


def dataset_from_graph(
    graph: Graph,
    *,
    features: Float32s,
    labels: Int64s | Float32s | None,
    split: Split,
    classes: int | None = None,
) -> Dataset:
    """Make a Dataset of a graph and its features, labels and split.

    Labels with two dimensions are multi-label. The data set keeps the graph without its own
    features, labels and split.

    Args:
        graph: the graph, of V vertices.
        features: float32[V, F], finite.
        labels: int64[V] or float32[V, C], see Dataset; None: there are none.
        split: the split of the V vertices.
        classes: the number of classes; None takes it from the largest label, or from the
            columns of multi-label ones.

    Returns:
        The data set.

    Raises:
        DatasetError: the arrays do not have the form that Dataset describes.
    """
    if labels is None:
        labels, classes = np.full(graph.vertices, UNLABELLED), 0
    if classes is None:
        several = labels.ndim == 2
        classes = labels.shape[1] if several else int(labels.max(initial=UNLABELLED)) + 1
        if classes < 1:
            raise DatasetError(f"Data set {graph.name} has no classes.")
    return Dataset(
        graph=replace(graph, features=None, labels=None, split=None),
        features=features,
        labels=labels,
        **vars(split),
        classes=classes,
    )


def renumbered(graph: Graph, ids: Integers, vertices: int) -> Graph:
    """Return the edges and self-loops among `vertices` vertices, with ids[u] in place of u."""
    loops = np.zeros(0, np.int64) if graph.self_loops is None else graph.self_loops
    ends = [ids[np.concatenate([each, loops])] for each in graph.edges()]
    known = [each for each in (graph.weights, graph.loop_weights) if each is not None]
    weights = np.concatenate(known) if known else None
    return graph_from_edges(
        *ends, name=graph.name, vertices=vertices, directed=True, weights=weights
    )


def normalize_rows(features: Float32s) -> Float32s:
    """Make each row of float32[V, F] sum to 1, as NormalizeFeatures of PyG does.

    The smallest of all numbers is subtracted from each; rows whose sum is then below 1 are
    not scaled, so a row of zeros stays one.
    """
    shifted: Float32s = features - features.min(initial=np.inf)
    shifted /= np.maximum(shifted.sum(axis=1, keepdims=True), np.float32(1))
    return shifted


def _check_labels(data: Dataset) -> None:
    labels, name = data.labels, data.name
    labelled = data.multilabel or labels.max(initial=UNLABELLED) > UNLABELLED
    if data.classes < int(labelled):
        raise DatasetError(f"Data set {name} has no classes.")
    if data.classes > MOST_CLASSES:
        raise DatasetError(
            f"Data set {name} has {data.classes:,} classes, and at most {MOST_CLASSES:,} are "
            "possible; number them from 0."
        )
    shape = (data.vertices, data.classes) if data.multilabel else (data.vertices,)
    kinds = (np.float32, np.bool_) if data.multilabel else (np.int64,)
    if labels.shape != shape or labels.dtype not in kinds:
        wanted = "float32[V, C] or bool[V, C]" if data.multilabel else "int64[V]"
        raise DatasetError(
            f"Data set {name} needs labels of {wanted} for {data.vertices} vertices and "
            f"{data.classes} classes, not {labels.dtype}{list(labels.shape)}."
        )
    if data.multilabel:
        if not np.isin(labels, (0, 1)).all():
            raise DatasetError(f"Data set {name} has multi-label labels other than 0 and 1.")
    elif labels.min() < UNLABELLED or labels.max() >= data.classes:
        raise DatasetError(f"Data set {name} has a label outside 0..{data.classes - 1}.")


def _check_masks(data: Dataset) -> None:
    masks = {"train": data.train, "validation": data.validation, "test": data.test}
    for what, mask in masks.items():
        if mask.shape != (data.vertices,) or mask.dtype != np.bool_:
            raise DatasetError(
                f"Data set {data.name} needs a {what} mask of bool[{data.vertices}]."
            )
    times = sum(mask.astype(np.int8) for mask in masks.values())
    if np.max(times) > 1:
        raise DatasetError(
            f"Data set {data.name} has vertex {int(np.argmax(times))} in two parts of its split."
        )
    if data.classes and not data.train.any():
        raise DatasetError(f"Data set {data.name} has no vertices to train on.")
    unknown = (times > 0) & (data.labels == UNLABELLED) if not data.multilabel else times > 1
    if np.any(unknown):
        raise DatasetError(
            f"Data set {data.name} has vertex {int(np.argmax(unknown))} in its split, "
            "which has no label."
        )


# The arrays with a row for each vertex; labels may be whole numbers, or zeros and ones.
OF_VERTICES: Mapping[str, ArrayKind] = {
    "features": ArrayKind(("<f4",), (2,), shape="n,F"),
    "labels": ArrayKind(("<i8", "<f4", "|b1"), (1, 2), shape="n,C"),
    "train": ArrayKind(("|b1",), shape="n"),
    "validation": ArrayKind(("|b1",), shape="n"),
    "test": ArrayKind(("|b1",), shape="n"),
}
