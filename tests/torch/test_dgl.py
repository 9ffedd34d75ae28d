"""Jobs of graphs of DGL, and what `switchgnn.dgl` needs."""

import importlib.metadata
import re
import sys

import pytest
import torch

import switchgnn.torch as torch_sg
from switchgnn.training import load_dataset
from tests.training.helpers import refusal


@pytest.mark.parametrize(
    ("installed", "words"),
    [(None, "but dgl is missing: pip install"), ("2.4.0", "and 2.4.0 is installed")],
)
def test_a_missing_and_another_dgl_are_one_sentence(installed, words, monkeypatch):
    def version(name):
        if installed is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.delitem(sys.modules, "switchgnn.dgl", raising=False)
    with pytest.raises(ImportError, match=words) as error:
        import switchgnn.dgl  # noqa: F401, PLC0415
    assert re.fullmatch(r"[^\n]+ pip install \S.*\[dgl\]'\.", str(error.value))


def test_a_job_of_a_graph_is_that_of_its_data(tmp_path):
    dgl = pytest.importorskip("dgl", reason="DGL is not installed")
    import switchgnn.dgl as sg  # noqa: PLC0415

    karate = load_dataset("karate")
    u, v = karate.graph.edges()
    g = dgl.graph((u, v), num_nodes=karate.vertices)
    names = {"feat": "features", "label": "labels"}
    with refusal("has no feat: ndata must have feat, label, train_mask", torch_sg.JobError):
        sg.write_job(g, 2, tmp_path / "none")
    masks = {"train_mask": "train", "val_mask": "validation", "test_mask": "test"}
    for name, attribute in {**names, **masks}.items():
        g.ndata[name] = torch.from_numpy(getattr(karate, attribute))
    job = sg.write_job(g, 2, tmp_path / "job", slots=16, name=karate.name)
    assert job.parts == torch_sg.write_job(karate, 2, tmp_path / "other", slots=16).parts
    with refusal("has parallel edges", torch_sg.JobError):
        sg.write_job(dgl.add_edges(g, u[:1], v[:1]), 2, tmp_path / "none")
