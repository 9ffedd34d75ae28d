"""The state of a training on disk: one file, for any number of workers.

It is an archive of plain arrays (``.npz``): weights, the optimizer's state, and facts in JSON.
Reading it executes nothing and takes no more memory than the model, unlike ``torch.load`` and
``torch.distributed.checkpoint``, which read pickles.

All workers have the same weights, and the random numbers of an epoch follow from the seed, the
epoch and the worker (``layers/dropout.py``). Worker 0 writes the file, and reads it for all.
"""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from switchgnn.base.arrays import ArrayKind, ArraysError, read_npz
from switchgnn.base.files import UnpackLimit, whole_file
from switchgnn.base.full_disk import why_not_written
from switchgnn.base.records import RecordError, make_record, parse_json
from switchgnn.training.base.errors import TrainingError
from switchgnn.training.data.partition import Partition
from switchgnn.training.exchange.gradients import GradientSums

FORMAT, VERSION = "switchgnn-checkpoint", 3
_REMEDY = "train with the same options as before, or name another file"
_FACTS, _MODEL, _OPTIMIZER = "facts", "model", "optimizer"
_FACTS_KIND = ArrayKind(("|u1",))
_MOST_FACTS = 1 << 16
# The header of an array in the archive.
_HEADER_BYTES = 2048
# Adam's state of each parameter, which is empty before its first gradient.
_OF_PARAMETER = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class TrainingProgress:
    """The progress of a training."""

    epoch: int = 0  # epochs done
    best: float = -1.0  # the best validation accuracy so far; -1 before the first
    tries: int = 0  # evaluations since then


@dataclass(frozen=True)
class Trained:
    """The data set of a training, and the seed of splits, weights and dropout.

    A checkpoint of other data or another seed is refused; the model is checked by its weights.
    """

    data: str
    vertices: int
    features: int
    classes: int
    train: int
    validation: int
    test: int
    seed: int

    @classmethod
    def of(cls, partition: Partition, seed: int) -> "Trained":
        """Return the same on all workers."""
        return cls(
            data=partition.name,
            vertices=partition.total_vertices,
            features=partition.features.shape[1],
            classes=partition.classes,
            train=partition.total_train,
            validation=partition.total_validation,
            test=partition.total_test,
            seed=seed,
        )


@dataclass(frozen=True)
class _CheckpointFacts:
    format: str
    version: int
    progress: TrainingProgress
    trained: Trained


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
        self._model = model
        self._optimizer = optimizer
        self._trained = trained
        self._sums = sums
        self._own = own
        self._templates = _templates(model, optimizer)

    def save(self, progress: TrainingProgress) -> None:
        """Write the file atomically, and keep the previous one (``.before``)."""
        self._agree(self._written(progress) if self._own else "")

    def restore(self) -> TrainingProgress:
        """Continue from the file, if there is one."""
        progress, arrays, problem = TrainingProgress(), dict[str, Tensor](), ""
        if self._own:
            try:
                self._try_to_write()
                progress, arrays = self._read()
            except TrainingError as error:
                problem = str(error)
        self._agree(problem)
        return self._shared(progress, arrays)

    def _agree(self, problem: str) -> None:
        if problem := self._sums.spread_text(problem):
            raise TrainingError(problem)

    def _written(self, progress: TrainingProgress) -> str:
        """Write the file; return an error message or an empty text."""
        facts = asdict(_CheckpointFacts(FORMAT, VERSION, progress, self._trained))
        arrays = {_FACTS: np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)}
        arrays |= {name: _array(value) for name, value in self._state().items()}
        try:
            with whole_file(self._path, older=_previous(self._path)) as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            return self._not_written(error)
        return ""

    def _try_to_write(self) -> None:
        try:
            with tempfile.TemporaryFile(dir=self._path.parent):
                pass
        except OSError as error:
            raise TrainingError(self._not_written(error)) from error

    def _not_written(self, error: OSError) -> str:
        why = why_not_written(error, self._path)
        return f"Cannot write the checkpoint {self._path}: {why}."

    def _state(self) -> dict[str, Tensor]:
        state = {f"{_MODEL}/{name}": value for name, value in self._model.state_dict().items()}
        for number, values in self._optimizer.state_dict()["state"].items():
            state |= {_name(number, what): values[what] for what in _OF_PARAMETER}
        return state

    def _read(self) -> tuple[TrainingProgress, dict[str, Tensor]]:
        # A writer that was killed between two renames leaves only the previous file.
        files = [path for path in (self._path, _previous(self._path)) if path.exists()]
        if not files:
            return TrainingProgress(), {}
        try:
            facts = self._read_facts(files[0])
            kinds, size = {_FACTS: _FACTS_KIND}, _MOST_FACTS
            for name, like in self._templates.items():
                dtype = _array(torch.empty(0, dtype=like.dtype)).dtype.str
                kinds[name] = ArrayKind((dtype,), (like.dim(),), name.startswith(_OPTIMIZER))
                size += like.numel() * like.element_size() + _HEADER_BYTES
            # The size of this training's arrays bounds the memory that a file can take.
            limit = UnpackLimit(size, 0)
            found = read_npz(files[0], kinds, remedy=_REMEDY, limit=limit)
        except ArraysError as error:
            raise TrainingError(f"No checkpoint of this training: {error}") from error
        del found[_FACTS]
        return facts.progress, self._fitting(found, files[0])

    def _read_facts(self, path: Path) -> _CheckpointFacts:
        limit = UnpackLimit(_MOST_FACTS, 0)
        found = read_npz(path, {_FACTS: _FACTS_KIND}, remedy=_REMEDY, limit=limit, others=".*")
        try:
            read = parse_json(found[_FACTS].tobytes())
            if not isinstance(read, dict) or [read.get("format"), read.get("version")] != [
                *(FORMAT, VERSION)
            ]:
                raise RecordError(f"it is not of the format {FORMAT}, version {VERSION}")
            facts = make_record(_CheckpointFacts, read)
            if facts.progress.epoch < 1:
                raise RecordError("it is of no epoch")
        except RecordError as error:
            raise TrainingError(f"{path} is no checkpoint: {error}; {_REMEDY}.") from error
        for field in fields(Trained):
            before, now = (getattr(each, field.name) for each in (facts.trained, self._trained))
            if before != now:
                raise TrainingError(
                    f"{path} is the checkpoint of another training: there {field.name} was "
                    f"{before}, and here it is {now}; {_REMEDY}."
                )
        return facts

    def _fitting(self, found: Mapping[str, NDArray[Any]], path: Path) -> dict[str, Tensor]:
        for name, array in found.items():
            shape = tuple(self._templates[name].shape)
            if array.shape != shape:
                raise TrainingError(
                    f"{path} is no checkpoint of this model: {name} has the shape {array.shape} "
                    f"there, and {shape} here; {_REMEDY}."
                )
        for number in _numbers(self._templates):
            there = [_name(number, what) in found for what in _OF_PARAMETER]
            if any(there) and not all(there):
                raise TrainingError(
                    f"{path} is no checkpoint: the state of parameter {number} is not whole; "
                    f"{_REMEDY}."
                )
        return {name: torch.from_numpy(array) for name, array in found.items()}

    def _shared(self, progress: TrainingProgress, arrays: dict[str, Tensor]) -> TrainingProgress:
        shared = torch.tensor([progress.epoch, progress.best, progress.tries], dtype=torch.float64)
        epoch, best, tries = self._sums.spread(shared).tolist()
        if not epoch:
            return TrainingProgress()
        there = torch.tensor([name in arrays for name in self._templates], dtype=torch.uint8)
        self._sums.spread(there)
        state = {}
        for (name, like), is_there in zip(self._templates.items(), there.tolist(), strict=True):
            if is_there:
                value = arrays[name] if self._own else torch.zeros(like.shape, dtype=like.dtype)
                state[name] = self._sums.spread(value)
        self._model.load_state_dict(
            {name: state[f"{_MODEL}/{name}"] for name in self._model.state_dict()}
        )
        of_parameters = {
            number: {what: state[_name(number, what)] for what in _OF_PARAMETER}
            for number in _numbers(self._templates)
            if _name(number, _OF_PARAMETER[0]) in state
        }
        options = self._optimizer.state_dict()["param_groups"]
        self._optimizer.load_state_dict({"state": of_parameters, "param_groups": options})
        return TrainingProgress(int(epoch), best, int(tries))


def _previous(path: Path) -> Path:
    return path.with_name(f"{path.name}.before")


def _name(number: int, what: str) -> str:
    return f"{_OPTIMIZER}/{number}/{what}"


def _numbers(templates: Mapping[str, Tensor]) -> list[int]:
    named = (name.split("/") for name in templates if name.startswith(f"{_OPTIMIZER}/"))
    return sorted({int(parts[1]) for parts in named})


def _templates(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the arrays of a checkpoint by name, as tensors without memory."""
    templates = {}
    for name, value in model.state_dict().items():
        try:
            _array(value[:0] if value.dim() else value)
        except (AttributeError, TypeError) as error:
            raise TrainingError(
                f"The model's {name} cannot be saved: a checkpoint holds arrays of numbers, of "
                "types that NumPy has. Train without --checkpoint, or change the model."
            ) from error
        templates[f"{_MODEL}/{name}"] = _like(value)
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    for number, parameter in enumerate(parameters):
        for what in _OF_PARAMETER:
            alone = torch.empty((), dtype=torch.float32, device="meta")
            templates[_name(number, what)] = alone if what == "step" else _like(parameter)
    return templates


def _like(value: Tensor) -> Tensor:
    return torch.empty(value.shape, dtype=value.dtype, device="meta")


def _array(value: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = value.detach().cpu().numpy()
    return array.astype(array.dtype.newbyteorder("<"), copy=False)
