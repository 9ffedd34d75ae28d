# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The description file of a figure; `load.py` reads and checks it."""

from collections.abc import Mapping
from dataclasses import dataclass

from switchgnn.base.errors import SwitchGNNError
from switchgnn.lab.simulator import ETHERNET_MTU, LeafSpineOptions
from switchgnn.lab.simulator.setup import Mtu

# In a `where`: the smallest and the largest that the scale has.
LEAST, MOST = "least", "most"
UNLIMITED = "unlimited"
# In a claim's `before`: of all other series the one with the least number there.
FASTEST = "the fastest other"


@dataclass(frozen=True)
class PlottedSeries:
    """A colour of the legend.

    Attributes:
        label: what the legend calls it.
        system: one of SYSTEMS in `simulator/request.py`.
        memory: the switch's in place of the scale's: as 10MB, or `unlimited`.
        order: a key of ORDER_STRATEGIES in place of the system's.
        congestion_control: see NetworkOptions.
        whole_features: a slot holds a whole feature of the graph's, as the paper counts memory.
        switch: a name of `known_profiles`: banks, ports, tables, and the rate of the loop where
            the scale has none. Memory is the scale's.
    """

    label: str
    system: str
    memory: str | None = None
    order: str | None = None
    congestion_control: bool = True
    whole_features: bool = False
    switch: str = UNLIMITED


@dataclass(frozen=True)
class ScaledGraph:
    """A graph, and how much smaller than the paper's it is.

    Attributes:
        graph: as load_graph takes it; `{seed}` stands for the seed.
        shrink: the switch's memory, its tables', the delay of links and G3's bins are multiplied
            with it: so there are as many blocks and bins, and a barrier takes the same share of
            the time.
        feature: numbers of its whole feature (the paper's table 1).
    """

    graph: str
    shrink: float = 1.0
    feature: int = 128


@dataclass(frozen=True)
class Scale:
    """How large a figure is made.

    Attributes:
        graphs: by the paper's name for them.
        workers: their numbers.
        memory: of the switch, before it shrinks with the graph.
        seeds: their number; each draws another graph, partition and orders.
        recirculation_rates: passes per second; None: the switch's, or no limit.
        leaf_spine: in place of the star's switch; None: a star.
        background: loads, as shares of the links' rate.
        buffer: of each queue of the switch, as 500kB; None: no limit. It does not shrink.
    """

    graphs: Mapping[str, ScaledGraph]
    workers: tuple[int, ...]
    memory: tuple[str, ...]
    seeds: int = 1
    recirculation_rates: tuple[float | None, ...] = (None,)
    leaf_spine: LeafSpineOptions | None = None
    background: tuple[float, ...] = (0.0,)
    buffer: str | None = None


@dataclass(frozen=True)
class Panel:
    """One picture of a figure.

    Attributes:
        title: above it; `{workers}` stands for their number.
        draw: a key of KINDS in `draw.py`.
        y: what is drawn, a key of MEASURES in `measures.py`; of `time`, a key of OVER_TIME.
        x: `workers`, `memory`, `graph`, `recirculation` or `background`; `time` has none.
        where: what else is looked at: names of graphs, numbers of workers, memory; or `least`,
            `most`.
        series: labels of those that are drawn; empty: all.
        of: of `ratios`, a heat map: label of the series whose number is divided by the least of
            the others.
    """

    title: str
    draw: str
    y: str
    x: str = ""
    where: Mapping[str, str | int] | None = None
    series: tuple[str, ...] = ()
    of: str = ""


@dataclass(frozen=True)
class Claim:
    """A number of the paper, and what to set beside it.

    Attributes:
        says: what it is.
        paper: the paper's number, in its words.
        measure: a key of MEASURES.
        before, after: labels of two series; `before` may be FASTEST.
        give: `saved`: the share by which `after` is below `before`; `times`: after / before.
        where: as of a panel. Where it leaves a choice, the place with the largest value is taken.
        why: why our number is another one.
    """

    says: str
    paper: str
    measure: str
    before: str
    after: str
    why: str
    give: str = "saved"
    where: Mapping[str, str | int] | None = None


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes:
        name: of the file that describes it.
        title: above the picture.
        paper: which one of the paper's it redraws, and what is missing.
        layers, features, bandwidth, delay, window, mtu: see Point.
        series: in the order of the legend.
        panels: from left to right, three in a row.
        scales: by name.
        claims: rows of the table.
        panel_height: inches.
    """

    name: str
    title: str
    paper: str
    series: tuple[PlottedSeries, ...]
    panels: tuple[Panel, ...]
    scales: Mapping[str, Scale]
    claims: tuple[Claim, ...] = ()
    layers: int = 4
    features: int = 128
    bandwidth: float = 100_000.0
    delay: float = 2.0
    window: int = 512
    mtu: Mtu = ETHERNET_MTU
    panel_height: float = 3.1


class ExperimentError(SwitchGNNError):
    """A wrong description, or points that failed, in one sentence."""
