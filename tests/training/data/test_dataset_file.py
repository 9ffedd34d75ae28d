# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import given
from safetensors.numpy import load_file, save_file

from switchgnn.training import DatasetError, load_dataset
from switchgnn.training.data.dataset import read_dataset, write_dataset
from tests.training.helpers import STEADY, datasets, one_sentence


@STEADY
@given(datasets())
def test_what_is_read_is_what_was_written(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("data") / "d.safetensors"
    write_dataset(data, path)
    assert [each.name for each in path.parent.iterdir()] == ["d.safetensors"]
    again = read_dataset(path)
    assert again.graph.digest() == data.graph.digest()
    for name in ("features", "labels", "train", "validation", "test", "self_loops"):
        assert np.array_equal(getattr(again, name), getattr(data, name)), name
        assert getattr(again, name).dtype == getattr(data, name).dtype, name
    for name in ("name", "classes", "multilabel", "undirected"):
        assert getattr(again, name) == getattr(data, name), name


@pytest.fixture
def path(tmp_path):
    write_dataset(load_dataset("karate"), tmp_path / "d.safetensors")
    return tmp_path / "d.safetensors"


def refused(path):
    with pytest.raises(DatasetError) as error:
        read_dataset(path)
    assert str(path) in one_sentence(error)
    return str(error.value)


def test_damaged_files_are_refused(path):
    arrays = load_file(path)
    for changes, part in (
        ({"train": arrays["train"].astype(int)}, "not a 1-D array of booleans"),
        ({"more": arrays["train"]}, "'more', which does not belong there"),
        ({"train": arrays["train"][1:]}, "train mask"),
        ({"indices": arrays["indices"] + 30}, "outside"),
        ({"classes": np.zeros(2, dtype=int)}, "not a 0-D array of integers"),
    ):
        save_file(arrays | changes, path)
        assert part in refused(path)
    path.write_bytes(b"not safetensors")
    assert "is refused" in refused(path)
    path.unlink()
    assert "cannot read" in refused(path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(DatasetError) as error:
        write_dataset(load_dataset("karate"), tmp_path / "no" / "d.safetensors")
    assert "cannot write" in one_sentence(error)
