# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options of `switchgnn train`."""

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.network import Station
from switchgnn.base.options import DATA, EXCHANGE
from switchgnn.commands.shared.options import known_mtu
from switchgnn.commands.shared.outputs import Recordings
from switchgnn.host.direct.framing import FRAGMENT, USUAL_MTU, Framing
from switchgnn.host.errors import TransportError
from switchgnn.host.pace import Pace
from switchgnn.host.registry import (
    AUTO,
    DEFAULT,
    G3,
    TRANSPORTS,
    SwitchProgram,
    TransportKind,
    transport_kind,
)
from switchgnn.host.wire.addresses import Addresses
from switchgnn.p4src import Program, load_program, load_strawman
from switchgnn.planner.chosen import Asked
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import Choice, Situation
from switchgnn.topologies import Backend
from switchgnn.training.worker import TrainTask

if TYPE_CHECKING:
    from switchgnn.training.bins import BinOptions
    from switchgnn.training.data.dataset import Dataset

# By how many seconds workers may be apart. The command itself sees that a process has ended, or
# does nothing any more.
SKEW = 180.0
# Strategies, and a plan that was made with them.
Planned = tuple[Choice, Plan]


@dataclass(frozen=True)
class TrainJob:
    """What to train, where, and over which transport.

    Attributes:
        task: the options that are the same for all workers; the worker, its link, addresses
            and files are filled in later.
        workers: their number.
        slots: the aggregators that a block may use.
        recordings: the files that keep the packets of the links, if any do.
        leaf_spine: the leaves that the workers are attached to, and the spines; None: a star
            around one switch.
        target, fabric: a choice or ``auto``.
        backend: what embedded switches run the program as; None: what the environment says.
        bandwidth: Mbit/s per link, or None.
        ecn_threshold: the queue length in packets from which packets are marked.
        background: TCP flows from each worker to the next.
        asked: the strategies to plan with. Over transports other than ``switch`` only the
            partition counts, and for ``g3`` it is G3's unless another is asked for by name.
        metrics: the address and the port where worker 0 serves metrics; None: nobody does.
        planned: a plan that was made already, and its strategies.
    """

    task: TrainTask
    workers: int
    slots: int
    target: str
    fabric: str
    bandwidth: float | None
    ecn_threshold: int
    background: int = 0
    asked: Asked = field(default_factory=Asked)
    leaf_spine: LeafSpine | None = None
    backend: Backend | None = None
    recordings: Recordings = field(default_factory=Recordings)
    metrics: tuple[str, int] | None = None
    planned: Planned | None = None

    @property
    def transport(self) -> TransportKind:
        """The transport of the task.

        Raises:
            TransportError: there is none of that name.
        """
        return transport_kind(self.task.transport)

    @property
    def framing(self) -> Framing | None:
        """What frames between hosts carry; None over a transport that has none."""
        return Framing.parse(self.task.mtu) if self.transport.between_hosts else None

    @property
    def program(self) -> Program:
        """The program of the switches; SwitchGNN's also forwards what it does not add up."""
        return (
            load_strawman() if self.transport.program is SwitchProgram.STRAWMAN else load_program()
        )

    @property
    def situation(self) -> Situation:
        """The facts by which strategies are chosen."""
        return Situation(self.workers, self.slots, leaf_spine=self.leaf_spine)


def default_task(**changes: Any) -> TrainTask:  # noqa: ANN401
    """Return a task whose worker, transport, files and addresses are still to be filled in."""
    nobody = Station("00:00:00:00:00:00", "0.0.0.0")  # noqa: S104
    nowhere = Addresses(nobody, nobody)
    fields = {
        **{"worker": 0, "partitions": Path(), "transport": "", "link": ""},
        **{"pace": Pace(), "addresses": nowhere},
    }
    return TrainTask(**{**fields, **changes})


_SAMPLED = " or ".join(each.name for each in TRANSPORTS if each.samples)
_BETWEEN_HOSTS = ", ".join(each.name for each in TRANSPORTS if each.between_hosts)
# Paragraphs of a help are lines of it.
_TRANSPORT_HELP = "\n\n".join(
    (
        "What carries the sums; repeat it to compare:",
        *(f"{each.name}: {each.help}" for each in (*TRANSPORTS, AUTO)),
    )
)


def _known_transports(names: list[str] | None) -> list[str] | None:
    for name in names or ():
        try:
            _kind(name)
        except TransportError as error:
            known = ", ".join(_named_transports())
            raise typer.BadParameter(
                f"There is no transport {name!r}: choose one of {known}."
            ) from error
    return names


def _kind(name: str) -> TransportKind:
    return AUTO if name == AUTO.name else transport_kind(name)


def _named_data() -> list[str]:
    return ["digits", "karate", "cora", "citeseer", "pubmed", "reddit", "yelp", "ogbn-products"]


def _named_transports() -> list[str]:
    return [each.name for each in (*TRANSPORTS, AUTO)]


class PipelineOption(str, Enum):
    """Values of --pipeline, by the names of G3's ablation."""

    BOTH = "both"
    INTRA = "intra"
    INTER = "inter"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True)
class DataOptions:
    """Which data set."""

    data: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            rich_help_panel=DATA,
            autocompletion=_named_data,
            help="digits, karate, cora, citeseer, pubmed, reddit, yelp, ogbn-products, "
            "digits:NEIGHBOURS, random:VERTICES:EDGES:SEED, or a file .npz.",
        ),
    ] = "digits"
    root: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=DATA,
            show_default=False,
            help="Of the data set, such as raw Planetoid files.",
        ),
    ] = None
    edges: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=DATA,
            show_default=False,
            help="Your own graph: an edge list; with the next two.",
        ),
    ] = None
    node_features: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=DATA,
            show_default=False,
            help="Its features: .npy, .csv or .json.",
        ),
    ] = None
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=DATA,
            show_default=False,
            help="Its labels: .csv, .npy or text.",
        ),
    ] = None

    @property
    def title(self) -> str:
        """What messages call it."""
        return self.data if self.edges is None else self.edges.name

    def load(self, seed: int) -> "Dataset":
        """Return the data set by its name, or of files of edges, features and labels.

        Args:
            seed: of its splits.

        Raises:
            SwitchGNNError: it cannot be loaded, or some of the files are missing.
        """
        from switchgnn.training import load_dataset, load_files  # noqa: PLC0415

        if self.edges is None or self.node_features is None or self.labels is None:
            if any((self.edges, self.node_features, self.labels)):
                raise SwitchGNNError("--edges, --node-features and --labels go together.")
            return load_dataset(self.data, self.root, seed=seed)
        return load_files(self.edges, self.node_features, self.labels, seed=seed)


@dataclass(frozen=True)
class TransportOptions:
    """What carries the sums, and options of some transports."""

    transport: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=EXCHANGE,
            show_default=DEFAULT.name,
            help=_TRANSPORT_HELP,
            callback=_known_transports,
            autocompletion=_named_transports,
        ),
    ] = None
    sampling: Annotated[
        float,
        typer.Option(
            min=0.0001,
            max=1.0,
            metavar="P",
            rich_help_panel=EXCHANGE,
            help=f"BNS-GCN's p, for the transport {_SAMPLED}.",
        ),
    ] = 1.0
    mtu: Annotated[
        str,
        typer.Option(
            metavar="BYTES",
            rich_help_panel=EXCHANGE,
            callback=known_mtu,
            help=f"The largest IP packet of {_BETWEEN_HOSTS}, into which rows are packed; or "
            f"{FRAGMENT}: a frame of 188 bytes for each fragment of a row.",
        ),
    ] = str(USUAL_MTU)
    bin_memory: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="BYTES",
            rich_help_panel=EXCHANGE,
            help=f"That two bins take, for the transport {G3.name}.",
        ),
    ] = 1_000_000
    pipeline: Annotated[
        PipelineOption,
        typer.Option(
            metavar="WHAT",
            rich_help_panel=EXCHANGE,
            help=f"Overlaps with the transport {G3.name}: "
            f"{', '.join(each.value for each in PipelineOption)}.",
        ),
    ] = PipelineOption.BOTH

    def chosen(self) -> list[TransportKind]:
        """Return the transports in their order.

        Raises:
            SwitchGNNError: rows are to be sampled over one that is exact.
        """
        chosen = [_kind(name) for name in self.transport or [DEFAULT.name]]
        if self.sampling < 1 and not all(each.samples for each in chosen):
            raise SwitchGNNError(
                f"--sampling is for --transport {_SAMPLED} alone: the others are exact."
            )
        return chosen

    def bins(self) -> "BinOptions":
        """Return the size of bins and what overlaps."""
        from switchgnn.training.bins import PIPELINES, BinOptions  # noqa: PLC0415

        return BinOptions(self.bin_memory, *PIPELINES[self.pipeline.value])
