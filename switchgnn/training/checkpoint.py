"""The state of a training on disk: one safetensors file, for any number of workers.

All workers have the same weights, and the random numbers of an epoch follow from the seed, the
epoch and the worker (``layers/dropout.py``). Worker 0 writes the file, and reads it for all.
Reading it executes nothing, unlike ``torch.distributed.checkpoint``, which reads pickles.
"""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from switchgnn.base.files import read_regular, whole_file, why_not_written
from switchgnn.base.records import RecordError, make_record, parse_json
from switchgnn.training.base.errors import TrainingError
from switchgnn.training.data.partition import Partition
from switchgnn.training.exchange.gradients import GradientSums

FORMAT, VERSION = "switchgnn-checkpoint", 4
_FACTS, _MODEL, _OPTIMIZER = "facts", "model", "optimizer"
# Adam's state of each parameter, which is empty before its first gradient.
_OF_PARAMETER = ("step", "exp_avg", "exp_avg_sq")
# The data set of a training, and the seed of splits, weights and dropout. A checkpoint of others is
# refused; the model is checked by its weights.
Trained = Mapping[str, str | int]


@dataclass(frozen=True)
class TrainingProgress:
    """The progress of a training."""

    epoch: int = 0  # epochs done
    best: float = -1.0  # the best validation accuracy so far; -1 before the first
    tries: int = 0  # evaluations since then


def what_is_trained(partition: Partition, seed: int) -> Trained:
    """Return the same on all workers."""
    return {
        "data": partition.name,
        "vertices": partition.total_vertices,
        "features": partition.features.shape[1],
        "classes": partition.classes,
        "train": partition.total_train,
        "validation": partition.total_validation,
        "test": partition.total_test,
        "seed": seed,
    }


@dataclass(frozen=True)
class _CheckpointFacts:
    format: str
    version: int
    progress: TrainingProgress
    trained: dict[str, str | int]


class Checkpoint:
    """The file of one training; all workers call the same methods at the same time."""

    def __init__(
        self,
        path: Path,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        trained: Trained,
        sums: GradientSums,
        *,
        own: bool,
    ) -> None:
        self._path = path
        self._previous = path.with_name(f"{path.name}.before")
        self._model = model
        self._optimizer = optimizer
        self._trained = trained
        self._sums = sums
        self._own = own
        for name, value in model.state_dict().items():
            if not isinstance(value, Tensor) or value.layout is not torch.strided:
                raise TrainingError(
                    f"The model's {name} cannot be saved: a checkpoint holds dense tensors. Train "
                    "without --checkpoint, or change the model."
                )

    def save(self, progress: TrainingProgress) -> None:
        """Write the file atomically, and keep the previous one (``.before``)."""
        self._agree(self._written(progress) if self._own else "")

    def restore(self) -> TrainingProgress:
        """Continue from the file, if there is one."""
        data, problem = b"", ""
        if self._own:
            try:
                with tempfile.TemporaryFile(dir=self._path.parent):
                    data = self._read()
            except OSError as error:
                problem = self._not_written(error)
            except TrainingError as error:
                problem = str(error)
        self._agree(problem)
        data = self._sums.spread_bytes(data)
        return self._restored(load(data)) if data else TrainingProgress()

    def _agree(self, problem: str) -> None:
        if problem := self._sums.spread_bytes(problem.encode()).decode():
            raise TrainingError(problem)

    def _written(self, progress: TrainingProgress) -> str:
        facts = asdict(_CheckpointFacts(FORMAT, VERSION, progress, dict(self._trained)))
        tensors = {_FACTS: torch.tensor([*json.dumps(facts).encode()], dtype=torch.uint8)}
        tensors |= {_weights(name): value for name, value in self._model.state_dict().items()}
        for number, values in self._optimizer.state_dict()["state"].items():
            tensors |= {_state(number, what): values[what] for what in _OF_PARAMETER}
        # Weights may share memory, which safetensors refuses.
        tensors = {name: each.detach().cpu().clone().contiguous() for name, each in tensors.items()}
        try:
            with whole_file(self._path, older=self._previous) as file:
                file.write(save(tensors))
        except OSError as error:
            return self._not_written(error)
        return ""

    def _not_written(self, error: OSError) -> str:
        why = why_not_written(error, self._path)
        return f"Cannot write the checkpoint {self._path}: {why}."

    def _read(self) -> bytes:
        # A writer that was killed between two renames leaves only the previous file.
        """Return the content of the file if it is of this training; nothing without a file."""
        files = [path for path in (self._path, self._previous) if path.exists()]
        if not files:
            return b""
        try:
            data = read_regular(files[0])
            self._check(load(data))
        except (OSError, SafetensorError, RecordError) as error:
            raise TrainingError(
                f"{files[0]} is no checkpoint of this training: {error}; train with the same "
                "options as before, or name another file."
            ) from error
        return data

    def _check(self, found: Mapping[str, Tensor]) -> None:
        facts = _facts_of(found)
        if (facts.format, facts.version) != (FORMAT, VERSION):
            raise RecordError(f"it is not of the format {FORMAT}, version {VERSION}")
        for name, now in self._trained.items():
            if (before := facts.trained.get(name)) != now:
                raise RecordError(f"there {name} was {before}, and here it is {now}")
        shapes = {_FACTS: found[_FACTS].shape}
        shapes |= {_weights(name): value.shape for name, value in self._model.state_dict().items()}
        parameters = [each for group in self._optimizer.param_groups for each in group["params"]]
        for number, parameter in enumerate(parameters):
            own = {_state(number, what): parameter.shape for what in _OF_PARAMETER}
            own[_state(number, "step")] = torch.Size()
            shapes |= own if own.keys() & found.keys() else {}
        if strange := sorted(found.keys() ^ shapes.keys()):
            verb = "holds" if strange[0] in found else "lacks"
            raise RecordError(f"it {verb} {strange[0]}, unlike this model")
        for name, shape in shapes.items():
            if (there := found[name].shape) != shape:
                raise RecordError(
                    f"{name} has the shape {tuple(there)} there, and {tuple(shape)} here"
                )

    def _restored(self, found: Mapping[str, Tensor]) -> TrainingProgress:
        names = self._model.state_dict()
        self._model.load_state_dict({name: found[_weights(name)] for name in names})
        options = self._optimizer.state_dict()["param_groups"]
        numbers = [number for group in options for number in group["params"]]
        of_parameters = {
            number: {what: found[_state(number, what)] for what in _OF_PARAMETER}
            for number in numbers
            if _state(number, _OF_PARAMETER[0]) in found
        }
        self._optimizer.load_state_dict({"state": of_parameters, "param_groups": options})
        return _facts_of(found).progress


def _weights(name: str) -> str:
    return f"{_MODEL}/{name}"


def _state(number: int, what: str) -> str:
    return f"{_OPTIMIZER}/{number}/{what}"


def _facts_of(found: Mapping[str, Tensor]) -> _CheckpointFacts:
    if _FACTS not in found:
        raise RecordError("it has no facts")
    read: Any = parse_json(found[_FACTS].numpy().tobytes())
    return make_record(_CheckpointFacts, read)
