# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options of `switchgnn train` that come in groups: data sets and transports."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.options import DATA, EXCHANGE
from switchgnn.commands.shared.topology import known_mtu
from switchgnn.host.direct.framing import FRAGMENT, USUAL_MTU
from switchgnn.host.errors import TransportError
from switchgnn.host.registry import AUTO, DEFAULT, G3, TRANSPORTS, TransportKind, transport_kind

if TYPE_CHECKING:
    from switchgnn.training.bins import BinOptions
    from switchgnn.training.data.dataset import Dataset

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
