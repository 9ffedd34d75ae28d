# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which model is trained; without PyTorch, so that wrong names are refused at once."""

from dataclasses import dataclass
from pathlib import Path

from switchgnn.base.names import no_such
from switchgnn.training.errors import TrainingError

MODELS = ("gcn", "sage", "gin")


@dataclass(frozen=True)
class ModelOptions:
    """Which model to train.

    Attributes:
        model: one of MODELS; or ``FILE.py:NAME``, where NAME is called with the numbers of
            features and classes and returns a model, and the other options do not apply.
        layers: the number of layers, at least 1.
        hidden: the units of each layer but the last.
        dropout: the share of units that are dropped in training.
    """

    model: str = "gcn"
    layers: int = 2
    hidden: int = 16
    dropout: float = 0.0

    @property
    def own(self) -> bool:
        """Whether the model is one of the user's own."""
        return ":" in self.model


# The paper's model (section 6.1); its learning rate is 0.01.
PAPER = ModelOptions(model="gcn", layers=4, hidden=128)


def model_name(text: str) -> str:
    """Check a model's name and make its path absolute, as workers may run in another folder."""
    path, colon, name = text.rpartition(":")
    if not colon:
        if text not in MODELS:
            raise TrainingError(no_such("model", text, MODELS, also=", or FILE.py:NAME"))
        return text
    if not Path(path).is_file():
        raise TrainingError(f"The model {text} has no file: {path} does not exist.")
    return f"{Path(path).absolute()}:{name}"
