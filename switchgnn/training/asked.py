# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options of a training, the same for `switchgnn train` and `python -m switchgnn.train`.

Help texts are there without PyTorch.
"""

import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from switchgnn.base.machine import require_memory
from switchgnn.base.options import MODEL, TRAINING
from switchgnn.host.wire.header import WIDEST
from switchgnn.training.device import DeviceName

if TYPE_CHECKING:
    from switchgnn.training.layers.models import ModelOptions
    from switchgnn.training.trainer import TrainOptions


# Above some 1e37 a step of Adam is no float32 any more.
_MOST_RATE = 1e30
_FLOAT_BYTES = 4
# A weight, its gradient, and two moments of Adam.
_COPIES_OF_WEIGHTS = 4


def _number(value: float) -> float:
    if math.isnan(value):
        raise typer.BadParameter("nan is no number")
    return value


def _named_models() -> list[str]:
    return ["gcn", "sage", "gin"]


@dataclass(frozen=True)
class AskedTraining:
    """What to train, and how."""

    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            rich_help_panel=MODEL,
            autocompletion=_named_models,
            help="gcn, sage, gin, or your own: FILE.py:NAME.",
        ),
    ] = "gcn"
    layers: Annotated[
        int,
        typer.Option(min=1, max=1000, metavar="N", rich_help_panel=MODEL, help="Number of layers."),
    ] = 2
    hidden: Annotated[
        int,
        typer.Option(min=1, max=WIDEST, metavar="N", rich_help_panel=MODEL, help="Hidden units."),
    ] = 16
    dropout: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=0.99,
            metavar="SHARE",
            rich_help_panel=MODEL,
            help="Of hidden units that are dropped.",
        ),
    ] = 0.5
    input_dropout: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.99,
            metavar="SHARE",
            rich_help_panel=MODEL,
            show_default="as --dropout; 0 with your own model",
            help="Of features that are dropped.",
        ),
    ] = None
    precompute: Annotated[
        bool,
        typer.Option(
            "--precompute/--no-precompute",
            rich_help_panel=MODEL,
            help="Exchange the sums of features that do not change once, and keep them.",
        ),
    ] = True
    paper: Annotated[
        bool,
        typer.Option(
            rich_help_panel=MODEL,
            show_default=False,
            help="The paper's model: gcn, 4 layers, 128 units.",
        ),
    ] = False
    epochs: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=TRAINING, help="Number of epochs.")
    ] = 100
    lr: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=_MOST_RATE,
            metavar="RATE",
            rich_help_panel=TRAINING,
            callback=_number,
            help="Learning rate of Adam.",
        ),
    ] = 0.01
    weight_decay: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=_MOST_RATE,
            metavar="RATE",
            rich_help_panel=TRAINING,
            callback=_number,
            help="Of Adam.",
        ),
    ] = 5e-4
    evaluate_every: Annotated[
        int,
        typer.Option(
            min=1, metavar="EPOCHS", rich_help_panel=TRAINING, help="How often to evaluate."
        ),
    ] = 10
    patience: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            rich_help_panel=TRAINING,
            help="Stop after so many evaluations without a gain; 0: never.",
        ),
    ] = 0
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=TRAINING,
            show_default=False,
            help="Save there, and go on from there.",
        ),
    ] = None
    device: Annotated[
        DeviceName,
        typer.Option(
            metavar="NAME",
            rich_help_panel=TRAINING,
            help="Where workers compute: cpu, or cuda, whose GPUs they take in turn.",
        ),
    ] = DeviceName.CPU

    def shape(self) -> "ModelOptions":
        """Return the model that is asked for.

        Raises:
            ModelError: it names no file or class that can be.
        """
        from switchgnn.training.layers.models import PAPER, ModelOptions, model_name  # noqa: PLC0415

        if self.paper:
            return PAPER
        return ModelOptions(model_name(self.model), self.layers, self.hidden, self.dropout)

    def check_size(
        self, shape: "ModelOptions", vertices: int, features: int, classes: int, processes: int
    ) -> None:
        """Check that a built-in model has room in memory, before it is built.

        Args:
            shape: the model that is asked for.
            vertices: of the graph.
            features: numbers per vertex.
            classes: outputs per vertex.
            processes: on this machine, each of which has all weights and its share of the vertices.

        Raises:
            TooLargeError: weights and activations have no room.
        """
        if shape.own:
            return
        widths = [features, *[shape.hidden] * (shape.layers - 1), classes]
        weights = sum(a * b for a, b in itertools.pairwise(widths))
        require_memory(
            f"The weights of {shape.layers:,} layers of {shape.hidden:,} hidden units on "
            f"{processes} workers, and the activations of {vertices:,} vertices,",
            _FLOAT_BYTES * (weights * _COPIES_OF_WEIGHTS * processes + vertices * sum(widths)),
            "give --hidden, --layers or --workers less",
        )

    def options(self, shape: "ModelOptions", seed: int) -> "TrainOptions":
        """Return how it is to be trained.

        Args:
            shape: the model that is asked for.
            seed: of weights and dropout.
        """
        from switchgnn.training.trainer import TrainOptions  # noqa: PLC0415

        return TrainOptions(
            epochs=self.epochs,
            learning_rate=self.lr,
            weight_decay=self.weight_decay,
            input_dropout=self._of_inputs(shape),
            seed=seed,
            evaluate_every=self.evaluate_every,
            precompute=self.precompute,
            patience=self.patience,
            checkpoint=None if self.checkpoint is None else self.checkpoint.absolute(),
        )

    def _of_inputs(self, shape: "ModelOptions") -> float:
        """Return the share of features to drop; a model of the user's own has its own dropout."""
        if self.input_dropout is not None:
            return self.input_dropout
        return 0.0 if shape.own else shape.dropout
