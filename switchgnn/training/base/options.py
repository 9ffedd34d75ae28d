"""The options that `switchgnn train` and `python -m switchgnn.train` share, without PyTorch.

So wrong names are refused at once.
"""

import itertools
import math
import os
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from switchgnn.base.machine import require_memory
from switchgnn.base.names import no_such
from switchgnn.base.options import MODEL, TRAINING, shared_fields
from switchgnn.host.wire.header import WIDEST
from switchgnn.training.base.compression import CompressionOptions
from switchgnn.training.base.errors import TrainingError

if TYPE_CHECKING:
    import torch
    from torch import nn

# Above about 1e37 a step of Adam overflows float32.
_MOST_RATE = 1e30
_FLOAT_BYTES = 4
# A weight, its gradient, and two moments of Adam.
_COPIES_OF_WEIGHTS = 4

MODELS = ("gcn", "sage", "gin")
_USUAL_DROPOUT = 0.5


@dataclass(frozen=True)
class ModelOptions:
    """Which model to train."""

    # one of MODELS; or `FILE.py:NAME`, where NAME is called with the numbers of features and
    # classes and returns a model, and the other options do not apply
    model: str = "gcn"
    layers: int = 2  # the number of layers, at least 1
    hidden: int = 16  # the units of each layer but the last
    dropout: float = 0.0  # the share of units that are dropped in training

    @property
    def own(self) -> bool:
        """Whether the model is one of the user's own."""
        return ":" in self.model

    def check_weights(self, *, weighted: bool) -> None:
        """Refuse a data set with edge weights for a built-in model that ignores them."""
        if weighted and not self.own and self.model != "gcn":
            raise TrainingError(
                f"The model {self.model} does not use edge weights: take gcn or a model of "
                "your own, or drop them with --ignore-weights."
            )


# The paper's model (section 6.1); its learning rate is 0.01.
PAPER = ModelOptions(model="gcn", layers=4, hidden=128)


def model_name(text: str) -> str:
    """Check a model's name and make its path absolute, as workers may run in another folder."""
    path, colon, name = text.rpartition(":")
    if not colon:
        if text not in MODELS:
            raise TrainingError(no_such("model", text, MODELS, also=", or FILE.py:NAME"))
        return text
    if not (path.endswith(".py") and Path(path).is_file()):
        why = "is not a Python file" if Path(path).is_file() else "does not exist"
        raise TrainingError(f"The model {text} has no file: {path} {why}.")
    return f"{Path(path).absolute()}:{name}"


@dataclass(frozen=True)
class TrainOptions:
    """The options of training; their defaults are those of `--epochs`, `--lr` and the others."""

    epochs: int = 100  # the largest number of epochs
    # of Adam
    learning_rate: float = 0.01
    weight_decay: float = 5e-4  # as in Kipf and Welling (ICLR 2017)
    input_dropout: float = 0.0  # the share of dropped features
    seed: int = 0  # of the weights and of dropout
    evaluate_every: int = 10  # epochs between two evaluations; the last epoch is always evaluated
    # whether the sums of features that do not change are exchanged once and kept
    precompute: bool = True
    # evaluations without a better validation accuracy before training stops; 0: never
    patience: int = 0
    # the file that worker 0 writes after each evaluation; training resumes from it
    checkpoint: Path | None = None


class DeviceName(str, Enum):
    """Values of --device."""

    CPU = "cpu"
    CUDA = "cuda"


def check_device(name: DeviceName) -> None:
    """Refuse a device that this machine does not have."""
    import torch  # noqa: PLC0415

    if name is DeviceName.CUDA and not torch.cuda.is_available():
        raise TrainingError(
            "There is no GPU here that PyTorch can use: leave --device out, or install a driver "
            "and a PyTorch with CUDA; `python -c 'import torch; print(torch.cuda.is_available())'` "
            "must print True."
        )


def own_device(name: DeviceName) -> "torch.device":
    """Return the device of this worker; workers of one machine take its GPUs in turn."""
    import torch  # noqa: PLC0415

    check_device(name)
    if name is DeviceName.CPU:
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())


def device_of(model: "nn.Module") -> "torch.device":
    """Return the device of a model's weights, or the CPU if it has none."""
    import torch  # noqa: PLC0415

    return next((each.device for each in model.parameters()), torch.device("cpu"))


class ReduceBy(str, Enum):
    """What adds up the gradients of all workers; values of --reduce."""

    SWITCH = "switch"
    SWITCH_32 = "switch-32"
    GLOO = "gloo"
    SERVER = "parameter-server"

    @property
    def bits(self) -> int:
        """How many bits each number takes on its way to the switch; 0: none goes there."""
        return {ReduceBy.SWITCH: 48, ReduceBy.SWITCH_32: 32}.get(self, 0)


def _number(value: float) -> float:
    if math.isnan(value):
        raise typer.BadParameter("nan is not a number")
    return value


def _rate_option(text: str, default: float) -> Any:  # noqa: ANN401
    return TRAINING.option("RATE", text, default=default, min=0.0, max=_MOST_RATE, callback=_number)


@dataclass(frozen=True)
class TrainingOptions:
    """The model and the options of training."""

    model: str = MODEL.option(
        "NAME",
        "Train gcn, sage, gin, or your own model: FILE.py:NAME.",
        default=ModelOptions.model,
        autocompletion=lambda: list(MODELS),
    )
    layers: int = MODEL.option("N", "Use N layers.", default=ModelOptions.layers, min=1, max=1000)
    hidden: int = MODEL.option(
        "N", "Use N hidden units.", default=ModelOptions.hidden, min=1, max=WIDEST
    )
    dropout: float | None = MODEL.option(
        "SHARE",
        "Drop this share of hidden units.",
        min=0.0,
        max=0.99,
        shown=f"{_USUAL_DROPOUT}; 0 with --cache",
    )
    input_dropout: float | None = MODEL.option(
        "SHARE",
        "Drop this share of features.",
        min=0.0,
        max=0.99,
        shown="as --dropout; 0 with your own model",
    )
    precompute: bool = MODEL.option(
        None,
        "Exchange the sums of features that do not change once, and keep them.",
        "--precompute/--no-precompute",
        default=TrainOptions.precompute,
    )
    unchecked: bool = MODEL.flag(
        "Take your own model without comparing what it computes on parts of a small graph.",
        "--unchecked",
    )
    paper: bool = MODEL.flag("Train the paper's model: gcn, 4 layers, 128 units.")
    epochs: int = TRAINING.option("N", "Train for N epochs.", default=TrainOptions.epochs, min=1)
    lr: float = _rate_option("Learning rate of Adam.", TrainOptions.learning_rate)
    weight_decay: float = _rate_option("Weight decay of Adam.", TrainOptions.weight_decay)
    evaluate_every: int = TRAINING.option(
        "EPOCHS",
        "Evaluate each time that this many epochs are done.",
        default=TrainOptions.evaluate_every,
        min=1,
    )
    patience: int = TRAINING.option(
        "N",
        "Stop after N evaluations without a gain; 0: never.",
        default=TrainOptions.patience,
        min=0,
    )
    checkpoint: Path | None = TRAINING.option(
        "FILE",
        "Save to this file, and resume from it. It has no remainders of error feedback: with 16 or "
        "8 bits a resumed training differs a little.",
    )
    device: DeviceName = TRAINING.option(
        "NAME",
        "Compute on the cpu, or on cuda, whose GPUs workers take in turn.",
        default=DeviceName.CPU,
    )
    compression: CompressionOptions = field(default_factory=CompressionOptions)

    def check_dropout(self) -> None:
        """Refuse dropout together with a cache."""
        for name, share in (("dropout", self.dropout), ("input-dropout", self.input_dropout)):
            if self.compression.caches and share:
                raise TrainingError(
                    f"--cache and --{name} {share} do not go together: with dropout all rows "
                    f"change in each epoch, so leave out --cache or --{name}."
                )

    def shape(self) -> ModelOptions:
        """Return the options of the model."""
        if self.paper:
            return PAPER
        usual = 0.0 if self.compression.caches else _USUAL_DROPOUT
        dropout = usual if self.dropout is None else self.dropout
        return ModelOptions(model_name(self.model), self.layers, self.hidden, dropout)

    def check_size(
        self, shape: ModelOptions, vertices: int, features: int, classes: int, processes: int
    ) -> None:
        """Check that a built-in model fits in memory, before it is built."""
        if shape.own:
            return
        widths = [features, *[shape.hidden] * (shape.layers - 1), classes]
        weights = sum(a * b for a, b in itertools.pairwise(widths))
        require_memory(
            f"The weights of {shape.layers:,} layers of {shape.hidden:,} hidden units on "
            f"{processes} workers, and the activations of {vertices:,} vertices,",
            _FLOAT_BYTES * (weights * _COPIES_OF_WEIGHTS * processes + vertices * sum(widths)),
            "reduce --hidden, --layers or --workers",
        )

    def options(self, shape: ModelOptions, seed: int) -> TrainOptions:
        """Return the options of training."""
        # A user's own model has its own dropout.
        usual = 0.0 if shape.own else shape.dropout
        own: dict[str, Any] = {
            "learning_rate": self.lr,
            "input_dropout": usual if self.input_dropout is None else self.input_dropout,
            "seed": seed,
            "checkpoint": self.checkpoint and self.checkpoint.absolute(),
        }
        return TrainOptions(**shared_fields(self, TrainOptions) | own)
