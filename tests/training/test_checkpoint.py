# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: whole or not there, of this model only, and never run as code."""

import os
import pickle
import zipfile

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from switchgnn.training.checkpoint import (  # noqa: E402
    load_checkpoint,
    load_common_checkpoint,
    save_checkpoint,
)
from switchgnn.training.errors import TrainingError  # noqa: E402


def make(width=3):
    model = torch.nn.Linear(width, 2)
    return model, torch.optim.Adam(model.parameters())


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(1, model.in_features)).sum().backward()
    optimizer.step()


def test_what_was_saved_comes_back(tmp_path):
    model, optimizer = make()
    step(model, optimizer)
    path = tmp_path / "saved.pt"
    save_checkpoint(path, model, optimizer, epoch=7, best=0.5, tries=2, by_all=bool)
    drawn = torch.rand(4)
    other, other_optimizer = make()
    assert load_checkpoint(path, other, other_optimizer) == (7, 0.5, 2)
    assert torch.equal(torch.rand(4), drawn)
    for _ in range(2):
        step(model, optimizer)
        step(other, other_optimizer)
    assert torch.equal(model.weight, other.weight)
    assert [entry.name for entry in path.parent.iterdir()] == ["saved.pt"]


@pytest.mark.parametrize("other", [True, False])
def test_it_is_there_for_all_workers_or_for_none(tmp_path, other):
    """Those of different epochs would be of no use."""
    path = tmp_path / "saved.pt"
    save_checkpoint(path, *make(), epoch=1, best=0.0, tries=0, by_all=bool)
    told = []

    def by_all(done):
        told.append(done)
        assert load_checkpoint(path, *make())[0] == 1
        return done and other

    save_checkpoint(path, *make(), epoch=2, best=0.0, tries=0, by_all=by_all)
    assert told == [True]
    assert load_checkpoint(path, *make())[0] == 1 + other
    files = {entry.name for entry in tmp_path.iterdir()}
    assert files == ({"saved.pt", "saved.pt.before"} if other else {"saved.pt"})


def test_who_cannot_write_tells_the_others(tmp_path):
    (tmp_path / "file").touch()
    told = []
    with pytest.raises(TrainingError, match=r"Cannot write the checkpoint .*file/saved\.pt: "):
        save_checkpoint(
            tmp_path / "file" / "saved.pt", *make(), epoch=1, best=0.0, tries=0, by_all=told.append
        )
    assert told == [False]


def test_no_file_is_a_new_training(tmp_path):
    assert load_checkpoint(tmp_path / "none.pt", *make()) == (0, -1.0, 0)


def test_another_model_is_refused(tmp_path):
    path = tmp_path / "saved.pt"
    save_checkpoint(path, *make(3), epoch=1, best=0.0, tries=0, by_all=bool)
    with pytest.raises(TrainingError, match="no checkpoint of this model"):
        load_checkpoint(path, *make(4))


def test_a_packed_one_is_not_unpacked(tmp_path):
    path, packed = tmp_path / "saved.pt", tmp_path / "packed.pt"
    save_checkpoint(path, *make(10_000), epoch=1, best=0.0, tries=0, by_all=bool)
    with zipfile.ZipFile(path) as saved, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in saved.namelist():
            new.writestr(name, bytes(len(saved.read(name))))
    with pytest.raises(TrainingError, match="would unpack to"):
        load_checkpoint(packed, *make(10_000))


@pytest.mark.parametrize("name", ["random", "epoch", "best", "tries"])
def test_one_without_a_field_is_refused(tmp_path, name):
    path = tmp_path / "saved.pt"
    save_checkpoint(path, *make(), epoch=1, best=0.0, tries=0, by_all=bool)
    content = torch.load(path, weights_only=True)
    torch.save(content | {name: None}, path)
    with pytest.raises(TrainingError, match="no checkpoint of this model"):
        load_checkpoint(path, *make())


class _Trap:
    def __reduce__(self):
        return (os.mkdir, ("trapped",))


def test_a_pickle_is_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "saved.pt"
    path.write_bytes(pickle.dumps(_Trap()))
    with pytest.raises(TrainingError, match="no checkpoint"):
        load_checkpoint(path, *make())
    assert not (tmp_path / "trapped").exists()


def save(path, epoch):
    save_checkpoint(path, *make(), epoch=epoch, best=0.0, tries=0, by_all=bool)


def resume(paths):
    """What each worker begins with: they agree one after the other, as if all at once."""
    newest = []
    for path in paths:
        with pytest.raises(StopIteration):
            load_common_checkpoint(path, *make(), least=noting(newest), by_all=bool)
    has = []
    for path in paths:
        with pytest.raises(StopIteration):
            load_common_checkpoint(path, *make(), least=lambda _: min(newest), by_all=noting(has))
    return [
        load_common_checkpoint(
            path, *make(), least=lambda _: min(newest), by_all=lambda _: all(has)
        )[0]
        for path in paths
    ]


def noting(values):
    def note(value):
        values.append(value)
        raise StopIteration

    return note


@pytest.mark.parametrize(
    ("saved", "epoch"),
    [
        ([[2, 4], [2, 4]], 4),
        ([[2, 4], [2]], 2),  # killed before its own was put into place
        ([[2, 4, 6], [2, 4]], 4),
        ([[2], []], 0),
        ([[], []], 0),
    ],
)
def test_workers_go_on_from_the_newest_that_all_have(tmp_path, saved, epoch):
    paths = [tmp_path / f"saved.{worker}" for worker in range(2)]
    for path, epochs in zip(paths, saved, strict=True):
        for each in epochs:
            save(path, each)
    assert resume(paths) == [epoch, epoch]


def test_killed_between_two_names(tmp_path):
    """The last one has its new name already, and the next one none yet."""
    paths = [tmp_path / f"saved.{worker}" for worker in range(2)]
    for path in paths:
        save(path, 2)
        save(path, 4)
    paths[1].rename(paths[1].with_name("saved.1.before"))
    assert resume(paths) == [4, 4]
    save(paths[0], 6)
    assert resume(paths) == [4, 4]


@pytest.mark.parametrize("saved", [[[2, 4, 6, 8], [2, 4]], [[2, 4], []]])
def test_those_of_different_trainings_are_refused(tmp_path, saved):
    paths = [tmp_path / f"saved.{worker}" for worker in range(2)]
    for path, epochs in zip(paths, saved, strict=True):
        for each in epochs:
            save(path, each)
    with pytest.raises(TrainingError, match="are of different epochs"):
        resume(paths)
