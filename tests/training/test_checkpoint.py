"""Checkpoints: whole or not there, of this training alone, for any workers, and never run."""

import os
import pickle
from dataclasses import replace

import pytest
from safetensors.torch import load_file, save_file

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from switchgnn.training.base.errors import TrainingError  # noqa: E402
from switchgnn.training.checkpoint import Checkpoint, TrainingProgress  # noqa: E402
from switchgnn.training.exchange.gradients import GradientSums  # noqa: E402
from tests.planner.helpers import refusal_of  # noqa: E402
from tests.training.threads import losses, train_in_threads  # noqa: E402

TRAINED = {"data": "karate", "train": 20, "seed": 0}
DONE = TrainingProgress(7, 0.5, 2)


def make(width=3):
    model = torch.nn.Linear(width, 2)
    return model, torch.optim.Adam(model.parameters())


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(1, model.in_features)).sum().backward()
    optimizer.step()


def stepped(width=3):
    model, optimizer = make(width)
    step(model, optimizer)
    return model, optimizer


def checkpoint(path, both=None, *, trained=TRAINED, sums=None):
    return Checkpoint(path, *(both or make()), trained, sums or GradientSums(), own=True)


@pytest.fixture
def saved(tmp_path):
    (tmp_path / "there").mkdir()
    path = tmp_path / "there" / "saved"
    checkpoint(path, stepped()).save(DONE)
    return path


def refused(path, both=None, **options):
    return refusal_of(TrainingError, checkpoint(path, both, **options).restore)


def changed(path, change):
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


def test_what_was_saved_comes_back(tmp_path):
    model, optimizer = stepped()
    path = tmp_path / "saved"
    checkpoint(path, (model, optimizer)).save(DONE)
    other, other_optimizer = make()
    assert checkpoint(path, (other, other_optimizer)).restore() == DONE
    for _ in range(2):
        step(model, optimizer)
        step(other, other_optimizer)
    assert torch.equal(model.weight, other.weight)
    assert [entry.name for entry in tmp_path.iterdir()] == ["saved"]


def test_a_parameter_that_was_never_used_has_no_state(tmp_path):
    def unused():
        model = torch.nn.ModuleList([torch.nn.Linear(3, 2), torch.nn.Linear(5, 2)])
        return model, torch.optim.Adam(model.parameters())

    model, optimizer = unused()
    model[1](torch.ones(1, 5)).sum().backward()
    optimizer.step()
    checkpoint(tmp_path / "saved", (model, optimizer)).save(DONE)
    other, other_optimizer = unused()
    checkpoint(tmp_path / "saved", (other, other_optimizer)).restore()
    assert sorted(other_optimizer.state_dict()["state"]) == [2, 3]
    assert torch.equal(other[0].weight, model[0].weight)


def test_the_one_before_is_kept(saved):
    checkpoint(saved, stepped()).save(replace(DONE, epoch=9))
    previous = saved.with_name("saved.before")
    assert {entry.name for entry in saved.parent.iterdir()} == {"saved", "saved.before"}
    assert checkpoint(saved).restore().epoch == 9
    assert checkpoint(previous).restore().epoch == 7


def test_killed_between_two_names(saved):
    """The old file is renamed already, and the new one is not."""
    saved.rename(saved.with_name("saved.before"))
    assert checkpoint(saved).restore() == DONE


def test_no_file_is_a_new_training(tmp_path):
    assert checkpoint(tmp_path / "none").restore() == TrainingProgress()
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_noticed_before_the_first_epoch(tmp_path):
    (tmp_path / "file").touch()
    assert "Cannot write the checkpoint" in refused(tmp_path / "file" / "saved")


def test_what_cannot_be_written_leaves_the_one_before(saved, monkeypatch):
    before = saved.read_bytes()

    def full(_tensors):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("switchgnn.training.checkpoint.save", full)
    with pytest.raises(TrainingError, match=r"Cannot write the checkpoint .*; make room"):
        checkpoint(saved, stepped()).save(replace(DONE, epoch=9))
    assert saved.read_bytes() == before
    assert [entry.name for entry in saved.parent.iterdir()] == ["saved"]


class Second(GradientSums):
    """Worker 1, which receives what worker 0 broadcasts."""

    def __init__(self, heard):
        super().__init__()
        self._alone = False
        self._heard = iter(heard)

    def _broadcast(self, values):
        values.copy_(torch.as_tensor(next(self._heard)))


def test_other_workers_hear_why(tmp_path):
    why = list(b"Cannot write.")
    sums = Second([len(why), why, len(why), why])
    second = Checkpoint(tmp_path / "nowhere" / "saved", *make(), TRAINED, sums, own=False)
    for call in (lambda: second.save(DONE), second.restore):
        with pytest.raises(TrainingError, match=r"^Cannot write\.$"):
            call()


def test_another_model_is_refused(saved):
    assert "model/weight has the shape (2, 3) there, and (2, 4) here" in refused(saved, make(4))
    model = torch.nn.Linear(3, 2, bias=False)
    both = model, torch.optim.Adam(model.parameters())
    assert "it holds model/bias, unlike this model" in refused(saved, both)
    changed(saved, lambda tensors: tensors.pop("optimizer/1/step"))
    assert "it lacks optimizer/1/step" in refused(saved)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": "digits"}, "there data was karate, and here it is digits"),
        ({"seed": 3}, "there seed was 0, and here it is 3"),
        ({"train": 4}, "there train was 20, and here it is 4"),
    ],
)
def test_another_training_is_refused(saved, change, words):
    assert words in refused(saved, trained=TRAINED | change)


@pytest.mark.parametrize("facts", [b"", b"[]", b'{"format": "switchgnn-checkpoint", "version": 4}'])
def test_strange_facts_are_refused(saved, facts):
    changed(saved, lambda tensors: tensors.update(facts=torch.tensor([*facts], dtype=torch.uint8)))
    assert "no checkpoint" in refused(saved).lower()


class _Trap:
    def __reduce__(self):
        return (os.mkdir, ("trapped",))


@pytest.mark.parametrize("where", ["file", "torch"])
def test_a_pickle_is_not_run(saved, where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if where == "file":
        saved.write_bytes(pickle.dumps(_Trap()))
    else:
        torch.save({"model": _Trap()}, saved)
    assert "no checkpoint" in refused(saved).lower()
    assert not (tmp_path / "trapped").exists()


def test_a_state_that_is_no_array_is_refused_at_once(tmp_path):
    model, optimizer = make()
    model.register_buffer("few", torch.zeros(2).to_sparse())
    with pytest.raises(TrainingError, match="The model's few cannot be saved"):
        checkpoint(tmp_path / "saved", (model, optimizer))


HALF, WHOLE = 4, 8


@pytest.mark.parametrize(("first", "then"), [(1, 3), (3, 1), (2, 4)])
def test_another_number_of_workers_goes_on_as_if_never_interrupted(karate, first, then, tmp_path):
    how = {"model": "gcn", "checkpoint": tmp_path / "saved"}
    whole = losses(train_in_threads(karate, then, model="gcn", epochs=WHOLE))
    began = losses(train_in_threads(karate, first, epochs=HALF, **how))
    rest = losses(train_in_threads(karate, then, epochs=WHOLE, **how))
    assert began + rest == pytest.approx(whole, abs=2e-5)
    assert len(rest) == WHOLE - HALF
