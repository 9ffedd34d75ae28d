# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs of the user's in place of generated ones."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from switchgnn.experiments.description import Figure, Scale
from switchgnn.experiments.errors import ExperimentError


def parse_graphs(words: Sequence[str]) -> dict[str, str]:
    """Read `NAME=GRAPH` words: the paper's name for a graph, and one as load_graph takes it.

    Raises:
        ExperimentError: a word without a name or a graph, or a name that comes twice.
    """
    graphs: dict[str, str] = {}
    for word in words:
        name, equals, graph = word.partition("=")
        if not (name and equals and graph) or name in graphs:
            raise ExperimentError(f"--graph {word} is not NAME=GRAPH, as Reddit=reddit.npz, once.")
        graphs[name] = graph
    return graphs


def with_graphs(figures: Sequence[Figure], graphs: Mapping[str, str]) -> list[Figure]:
    """Return the figures with these graphs in all scales; none of them shrinks anything.

    Raises:
        ExperimentError: no figure has a graph of that name.
    """
    known = {name for figure in figures for it in figure.scales.values() for name in it.graphs}
    for name in graphs:
        if name not in known:
            raise ExperimentError(
                f"No graph {name!r} in these figures; known: {', '.join(sorted(known))}."
            )
    return [
        replace(
            figure,
            scales={name: _with_graphs(scale, graphs) for name, scale in figure.scales.items()},
        )
        for figure in figures
    ]


def _with_graphs(scale: Scale, graphs: Mapping[str, str]) -> Scale:
    made = {
        name: replace(graph, graph=graphs[name], shrink=1.0) if name in graphs else graph
        for name, graph in scale.graphs.items()
    }
    return replace(scale, graphs=made)
