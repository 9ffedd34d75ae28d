# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The models of `switchgnn train`: PyG's own."""

from dataclasses import dataclass

from torch import nn
from torch_geometric.nn.models import GCN, GIN, GraphSAGE

from switchgnn.training.errors import TrainingError

MODELS = {"gcn": GCN, "sage": GraphSAGE, "gin": GIN}


@dataclass(frozen=True)
class ModelOptions:
    """What to train.

    Attributes:
        model: a key of MODELS.
        layers: their number, from 1.
        hidden: units of each layer but the last.
        dropout: share of units that are dropped in training.
    """

    model: str = "gcn"
    layers: int = 2
    hidden: int = 16
    dropout: float = 0.0


# The paper's model (section 6.1); its learning rate is 0.01.
PAPER = ModelOptions(model="gcn", layers=4, hidden=128)


def build_model(options: ModelOptions, features: int, classes: int) -> nn.Module:
    """Return a PyG model from ``features`` inputs to ``classes`` outputs.

    Raises:
        TrainingError: there is no such model.
    """
    if options.model not in MODELS:
        raise TrainingError(f"There is no model {options.model}: take {', '.join(MODELS)}.")
    model: nn.Module = MODELS[options.model](
        in_channels=features,
        hidden_channels=options.hidden,
        num_layers=options.layers,
        out_channels=classes,
        dropout=options.dropout,
    )
    return model
