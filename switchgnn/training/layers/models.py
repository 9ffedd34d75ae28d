# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The models of `switchgnn train`: those of PyTorch Geometric, and the user's own."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from torch import nn
from torch_geometric.nn.models import GCN, GIN, GraphSAGE

from switchgnn.planner.lanes import USUAL_WIDTH
from switchgnn.training.errors import TrainingError
from switchgnn.training.layers.own_code import made_by_user

MODELS = {"gcn": GCN, "sage": GraphSAGE, "gin": GIN}


@dataclass(frozen=True)
class ModelOptions:
    """Which model to train.

    Attributes:
        model: a key of MODELS; or ``FILE.py:NAME``, where NAME is called with the number of
            features and of classes and returns a model; the other options then do not apply.
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
    """Return the model as the user named it, a file with its full path.

    The path is made absolute because workers may run in another folder.

    Raises:
        TrainingError: no such model, or no such file.
    """
    path, colon, name = text.rpartition(":")
    if not colon:
        if text not in MODELS:
            raise TrainingError(_no_model(text))
        return text
    if not Path(path).is_file():
        raise TrainingError(f"The model {text} is in no file: there is no {path}.")
    return f"{Path(path).absolute()}:{name}"


def build_model(options: ModelOptions, features: int, classes: int) -> nn.Module:
    """Build a PyG model, or the one that a user's file defines.

    Args:
        options: which model.
        features: the number of inputs per vertex.
        classes: the number of outputs per vertex.

    Returns:
        The model.

    Raises:
        TrainingError: there is no such model.
        ModelError: the user's file fails.
    """
    if options.own:
        return _own_model(options.model, features, classes)
    if options.model not in MODELS:
        raise TrainingError(_no_model(options.model))
    model: nn.Module = MODELS[options.model](
        in_channels=features,
        hidden_channels=options.hidden,
        num_layers=options.layers,
        out_channels=classes,
        dropout=options.dropout,
    )
    return model


def exchanged_widths(
    options: ModelOptions, features: int, classes: int, *, kept: bool
) -> tuple[int, ...]:
    """Return the numbers of a row in each exchange of an epoch, forward and backward.

    A layer sums its inputs or the mapped ones, whichever are narrower (`SummedLayer.sums_first`).

    Args:
        options: which model; of one of the user's own nothing is known.
        features: the number of inputs per vertex.
        classes: the number of outputs per vertex.
        kept: whether sums of the inputs, which do not change, are kept.

    Returns:
        One number for each exchange.
    """
    if options.own:
        return (USUAL_WIDTH,)
    sizes = [features, *[options.hidden] * (options.layers - 1), classes]
    # The map of a GIN layer is not linear.
    summed = sizes[:-1] if options.model == "gin" else [min(pair) for pair in pairwise(sizes)]
    both = 2 * summed[1:]
    if kept:
        return tuple(both) or (features,)
    # Inputs need no gradient, so their sums travel once, and mapped rows twice.
    first_sums = options.model == "gin" or features <= 2 * sizes[1]
    first = [features] if first_sums else [sizes[1]] * 2
    return (*first, *both)


def _no_model(name: str) -> str:
    return f"There is no model {name}: take {', '.join(MODELS)}, or FILE.py:NAME."


def _own_model(spec: str, features: int, classes: int) -> nn.Module:
    path, name = spec.rsplit(":", 1)
    with made_by_user(spec):
        model = _load(path, name)(features, classes)
    if not isinstance(model, nn.Module):
        raise TrainingError(f"{spec} returned {type(model).__name__}, not a torch.nn.Module.")
    return model


def _load(path: str, name: str) -> Callable[[int, int], nn.Module]:
    found = importlib.util.spec_from_file_location("switchgnn_own_model", path)
    if found is None or found.loader is None:
        raise FileNotFoundError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    made: Callable[[int, int], nn.Module] = getattr(module, name)
    return made
