"""The options of `switchgnn train`; they need no PyTorch."""

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.names import no_such
from switchgnn.base.options import DATA, EXCHANGE, OUTPUT, TRAINING
from switchgnn.commands.shared import options
from switchgnn.commands.shared.outputs import OutputOptions, check_outputs
from switchgnn.host.direct.framing import FRAGMENT
from switchgnn.host.registry import AUTO, DEFAULT, G3, SWITCH, TRANSPORTS, TransportKind
from switchgnn.jobs.plots import require_matplotlib
from switchgnn.training import Dataset, load_dataset, load_files
from switchgnn.training.base.options import DeviceName, ReduceBy, TrainingOptions

if TYPE_CHECKING:
    from switchgnn.training.layers.bins import BinOptions

# The options that `train --help` shows; `--help-all` shows the others, too.
COMMON = (
    *("config", "data", "workers", "seed", "model", "layers", "hidden", "epochs", "lr"),
    *("checkpoint", "device", "transport", "strategy", "topology", "target", "fabric"),
    *("bandwidth", "plots", "live", "as_json", "verbose"),
)
_DATA = ("digits", "karate", "cora", "citeseer", "pubmed", "reddit", "yelp", "ogbn-products")
_KINDS = {each.name: each for each in (*TRANSPORTS, AUTO)}
_SAMPLED = ", ".join(each.name for each in TRANSPORTS if each.samples)
_BETWEEN_HOSTS = ", ".join(each.name for each in TRANSPORTS if each.between_hosts)
# Paragraphs become lines of the help.
_TRANSPORT_HELP = "\n\n".join(
    (
        "Exchange sums over this transport; repeat the option to compare:",
        *(f"{name}: {each.help}" for name, each in _KINDS.items()),
    )
)


def _known_transports(names: list[str] | None) -> list[str] | None:
    for name in names or ():
        if name not in _KINDS:
            raise typer.BadParameter(no_such("transport", name, _KINDS))
    return names


# Values of --pipeline, by the names of G3's ablation.
PipelineOption = Enum(
    "PipelineOption",
    {"BOTH": "both", "INTRA": "intra", "INTER": "inter", "SEQUENTIAL": "sequential"},
    type=str,
)


@dataclass(frozen=True)
class DataOptions:
    """Which data set."""

    data: str = DATA.option(
        "NAME",
        f"{', '.join(_DATA)}, digits:NEIGHBOURS, random:VERTICES:EDGES:SEED, or a path.",
        default="digits",
        autocompletion=lambda: list(_DATA),
    )
    root: Path | None = DATA.option(
        "FOLDER", "Read the data set (such as raw Planetoid files) from this folder."
    )
    edges: Path | None = DATA.option("FILE", "Train on this graph (needs the next two options).")
    node_features: Path | None = DATA.option(
        "FILE", "Read its features from this .npy, .csv or .json file."
    )
    labels: Path | None = DATA.option(
        "FILE", "Read its labels from this .csv, .json, .npy or text file."
    )
    weights: options.WeightOptions = field(default_factory=options.WeightOptions)

    @property
    def title(self) -> str:
        """The name for messages."""
        return self.data if self.edges is None else self.edges.name

    def check(self) -> None:
        """Check that there is such a data set, or such files."""
        files = (self.edges, self.node_features, self.labels)
        if any(files) and not all(files):
            raise SwitchGNNError("--edges, --node-features and --labels go together.")
        for file in files:
            if file is not None and not file.exists():
                raise SwitchGNNError(f"There is no file {file}: give the path of one.")

    def load(self, seed: int) -> Dataset:
        """Load the data set by its name, or from files of edges, features and labels."""
        if self.edges is None or self.node_features is None or self.labels is None:
            return load_dataset(self.data, self.root, seed=seed, edge_weights=self.weights.asked)
        return load_files(
            *(self.edges, self.node_features, self.labels),
            seed=seed,
            edge_weights=self.weights.asked,
        )


@dataclass(frozen=True)
class TransportOptions:
    """What carries the sums, and options of some transports."""

    transport: list[str] | None = EXCHANGE.option(
        "NAME",
        _TRANSPORT_HELP,
        shown=DEFAULT.name,
        callback=_known_transports,
        autocompletion=lambda: list(_KINDS),
    )
    sampling: float = EXCHANGE.option(
        "P",
        f"Sample boundary vertices with this probability, BNS-GCN's p ({_SAMPLED}).",
        default=1.0,
        min=0.0001,
        max=1.0,
    )
    mtu: str = options.mtu_option(
        EXCHANGE,
        f"Pack rows of {_BETWEEN_HOSTS} into IP packets of up to this size; {FRAGMENT}: "
        "a frame of 188 bytes for each fragment of a row.",
    )
    phases: bool = EXCHANGE.flag(
        f"Let {_BETWEEN_HOSTS} send in an order in which each worker gets rows of one other at a "
        "time.",
        "--phases",
    )
    bin_memory: int = EXCHANGE.option(
        "BYTES", f"Limit two bins to this size ({G3.name}).", default=1_000_000, min=1
    )
    pipeline: PipelineOption = EXCHANGE.option(
        "WHAT",
        f"Choose what overlaps ({G3.name}): {', '.join(each.value for each in PipelineOption)}.",
        default=PipelineOption.BOTH,
    )

    reduce: ReduceBy | None = EXCHANGE.option(
        None,
        "Add up gradients with switch (48 bits per number), switch-32 (less precise), gloo or "
        f"parameter-server, which is worker 0; the first two need --transport {SWITCH.name}.",
        shown="the one predicted to be faster",
    )

    adapt: bool = TRAINING.flag(
        "Move blocks and gradients between switch and hosts by observed times "
        f"({AUTO.name}, {SWITCH.name}).",
        "--adapt/--no-adapt",
    )

    def chosen(self) -> list[TransportKind]:
        """Return the transports in their order."""
        chosen = [_KINDS[name] for name in self.transport or [DEFAULT.name]]
        by = self.reduce
        if by and by.bits and not all(each.in_switch for each in chosen):
            raise SwitchGNNError(
                f"--reduce {by.value} is for --transport {SWITCH.name} alone: over the "
                "others the switch adds up no gradients."
            )
        if self.sampling < 1 and not all(each.samples for each in chosen):
            raise SwitchGNNError(
                f"--sampling is not for all of these: take --transport {_SAMPLED}."
            )
        return chosen

    def bins(self) -> "BinOptions":
        """Return the size of bins and what overlaps."""
        from switchgnn.training.layers.bins import PIPELINES, BinOptions  # noqa: PLC0415

        return BinOptions(self.bin_memory, *PIPELINES[self.pipeline.value])


@dataclass(frozen=True, kw_only=True)
class TrainCommandOptions:
    """The options of `switchgnn train`."""

    data: DataOptions
    workers: int = options.workers_option(4)
    workers_per_machine: int = options.per_machine_option()
    seed: int = options.seed_option()
    training: TrainingOptions
    over: TransportOptions
    strategies: options.PlanningOptions
    network: options.JobNetworkOptions
    plots: Path | None = OUTPUT.option("FOLDER", "Draw plots into this folder, as PNG and SVG.")
    tensorboard: Path | None = OUTPUT.option("FOLDER", "Write TensorBoard events to this folder.")
    output: OutputOptions

    def check(self, chosen: list[TransportKind]) -> None:
        """Check all that is known without PyTorch, before any work."""
        check_outputs(
            {
                "--plots": self.plots,
                "--pcap": self.output.pcap,
                "--tensorboard": self.tensorboard,
                "--log-dir": self.output.logs.log_dir,
            },
            {"--checkpoint": self.training.checkpoint},
        )
        if self.plots is not None:
            require_matplotlib()
        self.output.page.check()
        self.data.check()
        self.training.shape()
        self.training.compression.check()
        self._check_transports(chosen)

    def _check_transports(self, chosen: list[TransportKind]) -> None:
        if self.training.checkpoint is not None and len(chosen) > 1:
            raise SwitchGNNError(
                "--checkpoint is for one --transport: each would go on from the last."
            )
        self._check_compression(chosen)
        if self.over.adapt and (words := self.one_path(chosen)):
            raise SwitchGNNError(f"--adapt needs several paths: {words}, so leave it out.")
        if self.training.device is not DeviceName.CPU and any(each.binned for each in chosen):
            raise SwitchGNNError(
                f"--transport {G3.name} computes its bins on the CPU: leave --device out."
            )
        if self.output.pcap is not None and not any(each.networked for each in chosen):
            raise SwitchGNNError(
                "--pcap keeps the packets of links, and --transport local has none."
            )

    def one_path(self, chosen: list[TransportKind]) -> str:
        """Return why exchanges have one path, in words; empty: they may have several."""
        alone = [each.name for each in chosen if each not in (AUTO, SWITCH)]
        reasons = {
            f"--transport {', '.join(alone)} has one": alone,
            "one worker has none": self.workers == 1,
            "leaves and spines have one": self.network.leaf_spine(self.workers),
            "with several workers per machine there is one": self.workers_per_machine > 1,
            "with compression there is one": self.training.compression.active,
            "with --sampling there is one": self.over.sampling < 1,
        }
        return next((words for words, holds in reasons.items() if holds), "")

    def _check_compression(self, chosen: list[TransportKind]) -> None:
        self.training.check_dropout()
        compression = self.training.compression
        named = compression.named_of_rows
        if self.workers_per_machine > 1 and (named or any(each.binned for each in chosen)):
            raise SwitchGNNError(
                f"{named or f'--transport {G3.name}'} is not for several workers per machine."
            )
        without = [each.name for each in chosen if not each.compresses]
        if named and without:
            raise SwitchGNNError(
                f"{named} is not for --transport {without[0]}: take "
                f"{', '.join(each.name for each in (*TRANSPORTS, AUTO) if each.compresses)}."
            )
        if named and self.over.sampling < 1:
            raise SwitchGNNError(
                f"{named} and --sampling do not go together: with sampling other rows "
                "are due in each epoch."
            )
        whole = [each.name for each in chosen if each.binned or not each.networked]
        if compression.keep < 1 and whole:
            raise SwitchGNNError(
                f"--keep is not for --transport {whole[0]}, which exchanges all columns or nothing."
            )
