"""Layers of PyTorch Geometric leave no files behind; a small data set."""

from importlib.util import find_spec

import pytest

from switchgnn.training import load_dataset


@pytest.fixture(autouse=True)
def _templates():
    if find_spec("torch_geometric") is None:
        yield
        return
    from switchgnn.training.layers.pyg_layers import templates_removed  # noqa: PLC0415

    with templates_removed():
        yield


@pytest.fixture(scope="module")
def karate():
    return load_dataset("karate")
