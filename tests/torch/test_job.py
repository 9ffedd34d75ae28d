"""Jobs on disk: what is written is read, and what is no job, or another one, is refused."""

import json
import re
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

import switchgnn.torch as sg
from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.base.errors import TransportError
from switchgnn.host.registry import G3, HOST, SWITCH
from switchgnn.planner import PlanRequest, read_plan
from switchgnn.planner.costs.seconds import NetworkModel
from switchgnn.training import UNLABELLED, load_dataset
from switchgnn.training.base.errors import JobError
from switchgnn.training.data.load import dataset_from_pyg
from switchgnn.training.data.partition import partition_file, read_partition
from switchgnn.training.job import job_transport, read_part
from switchgnn.training.script import _data_of
from switchgnn.training.torchrun import main
from tests.training.helpers import refusal

MASKS = ["train_mask", "val_mask", "test_mask"]


def data_of(dataset):
    """The data set as PyG has it."""
    return Data(
        x=torch.from_numpy(dataset.features),
        y=torch.from_numpy(dataset.labels),
        edge_index=torch.from_numpy(np.stack(dataset.graph.edges())).long(),
        train_mask=torch.from_numpy(dataset.train),
        val_mask=torch.from_numpy(dataset.validation),
        test_mask=torch.from_numpy(dataset.test),
    )


@pytest.fixture(scope="module")
def karate():
    return load_dataset("karate")


@pytest.fixture
def job(tmp_path, karate):
    return tmp_path / "job", sg.write_job(karate, 2, tmp_path / "job", slots=16)


def test_what_is_written_is_read(job, karate):
    folder, written = job
    assert sg.read_job(folder) == written
    assert (written.vertices, written.train) == (karate.vertices, int(karate.train.sum()))
    assert written.plan == read_plan(folder / "plan").manifest.digest
    for worker in range(2):
        assert read_part(folder, written, worker).workers == 2


def test_with_copies_parts_have_the_edges_from_other_workers(tmp_path, karate):
    found, (source, target) = [], np.stack(karate.graph.edges())
    written = sg.write_job(karate, 3, tmp_path / "job", slots=16, copies=True)
    owner = np.full(karate.vertices, -1)
    for worker in range(3):
        part = read_part(tmp_path / "job", written, worker)
        owner[part.vertices] = worker
        found += [(u, part.vertices[row]) for u, row in part.incoming.T]
    between = owner[source] != owner[target]
    assert sorted(found) == sorted(zip(source[between], target[between], strict=True))


def test_parts_of_a_vertex_cut_have_each_edge_once(tmp_path, karate):
    cut = PlanRequest(partition="vertex-cut")
    job = sg.write_job(karate, 3, tmp_path / "job", request=cut, transports=["host"])
    parts = [read_part(tmp_path / "job", job, worker) for worker in range(3)]
    edges = [tuple(edge) for part in parts for edge in part.vertices[part.edges].T.tolist()]
    assert sorted(edges) == sorted(zip(*karate.graph.edges(), strict=True))
    own = np.concatenate([part.vertices[: part.own] for part in parts])
    assert sorted(own.tolist()) == list(range(karate.vertices))
    assert sum(part.train.sum() for part in parts) == karate.train.sum()
    for refused in ({"copies": True}, {"workers_per_machine": 3}):
        with pytest.raises(JobError, match="A vertex cut has no copies of rows"):
            sg.write_job(karate, 3, tmp_path / "none", request=cut, **refused)


def test_any_source_gives_the_same_job(tmp_path, job, karate):
    _, expected = job
    file = tmp_path / "karate.npz"
    graph = karate.graph
    arrays = {"features": karate.features, "labels": karate.labels}
    masks = {"train_mask": karate.train, "val_mask": karate.validation, "test_mask": karate.test}
    for path, more in ((file, {}), (tmp_path / "split.npz", masks)):
        np.savez(path, indptr=graph.indptr, indices=graph.indices, **arrays, **more)

    class OfPyg:
        name = karate.name

        def __getitem__(self, index):
            return (data_of(karate),)[index]

    class OfOgb(OfPyg):
        """As `ogb.nodeproppred.PygNodePropPredDataset`: splits, no masks, labels in a column."""

        def __getitem__(self, index):
            whole = data_of(karate)
            return (Data(x=whole.x, y=whole.y[:, None], edge_index=whole.edge_index),)[index]

        def get_idx_split(self):
            masks = {"train": karate.train, "valid": karate.validation, "test": karate.test}
            return {name: torch.from_numpy(mask.nonzero()[0]) for name, mask in masks.items()}

    sources = ("karate", file, str(file), data_of(karate), OfPyg(), OfOgb())
    assert np.array_equal(load_dataset(str(tmp_path / "split.npz"), seed=5).train, karate.train)
    for number, source in enumerate(sources):
        folder = tmp_path / f"job-{number}"
        assert sg.write_job(source, 2, folder, slots=16, name=karate.name) == expected


def test_strategies_and_leaves_are_those_that_were_asked_for(tmp_path, karate):
    asked = PlanRequest("best", partition="chunk")
    made = sg.write_job(karate, 4, tmp_path / "job", slots=16, request=asked, leaves=2, spines=1)
    assert (made.leaf_of_worker, made.spines) == ((0, 0, 1, 1), 1)
    assert read_plan(tmp_path / "job" / "plan").manifest.partition.method == "chunk"


def test_an_older_job_is_replaced_and_nothing_else(tmp_path, job, karate):
    folder, first = job
    assert sg.write_job(karate, 3, folder, slots=16) != first
    assert sg.read_job(folder).workers == 3
    other = tmp_path / "other"
    other.mkdir()
    (other / "plan").mkdir()
    with pytest.raises(sg.JobError, match="holds plan, which is not part of a job"):
        sg.write_job(karate, 2, other, slots=16)
    (tmp_path / "file").touch()
    with pytest.raises(sg.JobError, match="is a file"):
        sg.write_job(karate, 2, tmp_path / "file", slots=16)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda told: told | {"version": 1}, "its version is not 8"),
        (lambda told: told | {"format": "tar"}, "its format is not switchgnn-job"),
        (lambda told: told | {"workers": "2"}, "workers: expected int, got str"),
        (lambda told: told | {"workers": 3}, "it has 2 parts"),
        (lambda told: told | {"schedules": ["0"]}, "schedules: expected object, got array"),
        (lambda told: told | {"run": "rm"}, "unknown field run"),
        (lambda told: [told], "its format"),
        (lambda told: told | {"train": 10 * told["train"]}, "it was changed after"),
    ],
)
def test_a_damaged_job_is_refused(job, change, sentence):
    folder, _ = job
    file = folder / "job.json"
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    with pytest.raises(sg.JobError, match="is not a valid job, write it again") as refused:
        sg.read_job(folder)
    assert sentence in str(refused.value)


def test_no_job(tmp_path):
    with pytest.raises(sg.JobError, match="holds no job: cannot read"):
        sg.read_job(tmp_path)


def test_a_copy_that_differs_is_noticed(tmp_path, job, karate):
    folder, written = job
    (folder / "parts" / partition_file(1)).unlink()
    read_part(folder, written, 0)
    with pytest.raises(sg.JobError, match="Worker 1 has no part"):
        read_part(folder, written, 1)
    other = sg.write_job(karate, 2, tmp_path / "other", slots=8)
    with pytest.raises(sg.JobError, match=r"The plan in .* is not the job's"):
        read_part(folder, other, 0)


def test_every_file_is_under_a_digest(tmp_path, karate):
    left = np.arange(karate.vertices) % 2 == 0
    options = {"left": left, "transports": ["host", "g3"]}
    assert len(sg.write_job(karate, 2, tmp_path / "job", slots=16, **options).schedules) == 8
    assert read_plan(tmp_path / "job" / "plan").leaves_any
    folder = tmp_path / "job"
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    assert len(files) == 16
    for path in files:
        content = path.read_bytes()
        index = len(content) // 2
        path.write_bytes(content[:index] + bytes([content[index] ^ 1]) + content[index + 1 :])
        with pytest.raises(SwitchGNNError):
            read_all(folder)
        path.write_bytes(content)
    read_all(folder)


def read_all(folder):
    job = sg.read_job(folder)
    for worker, kind in product(range(job.workers), (SWITCH, HOST, G3)):
        read_part(folder, job, worker, kind)
    read_plan(folder / "plan")


def changed(karate, **changes):
    data = data_of(karate)
    for name, change in changes.items():
        data[name] = change(data)
    return data


@pytest.mark.parametrize(
    "changes",
    [
        {"x": lambda data: data.x.to_sparse()},
        {"x": lambda data: data.x.bfloat16()},
        {"x": lambda data: data.x.double().requires_grad_()},
        {"y": lambda data: data.y.float()},
        {"y": lambda data: data.y[:, None].bfloat16()},
        {"edge_weight": lambda data: torch.ones(data.num_edges)},
    ],
)
def test_the_same_data_as_other_tensors(karate, changes):
    ours = dataset_from_pyg(changed(karate, **changes), karate.name)
    assert np.array_equal(ours.features, karate.features)
    assert np.array_equal(ours.labels, karate.labels)
    assert not ours.multilabel


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"y": lambda data: data.y + 0.5}, "label 0.5"),
        ({"y": lambda data: torch.full_like(data.y, UNLABELLED)}, "has no classes"),
        ({"y": lambda data: data.y[:-1]}, r"not int64\[33\]"),
        ({"x": lambda data: data.x.tolist()}, "tensor as x, not a list"),
        ({"edge_index": lambda data: data.edge_index.t()}, r"\[2, E\], not .* transpose"),
        ({"edge_index": lambda data: data.edge_index + 0.5}, "whole numbers"),
        ({"edge_weight": lambda data: torch.rand(3)}, "one number in edge_weight"),
        ({"edge_attr": lambda data: torch.eye(data.num_edges)}, "has edge_attr"),
        ({"num_nodes": lambda data: data.num_nodes + 6}, "has 40 vertices .* 34 rows"),
    ],
)
def test_data_that_training_would_change_is_refused(tmp_path, karate, changes, part):
    with pytest.raises(SwitchGNNError, match=part):
        sg.write_job(changed(karate, **changes), 2, tmp_path / "job")


def test_a_missing_label_of_data_is_in_no_part(karate):
    data = data_of(karate)
    data.y = data.y.float()
    vertex = karate.test.nonzero()[0][0]
    data.y[vertex], data.test_mask[vertex] = torch.nan, False
    assert dataset_from_pyg(data, "mine").labels[vertex] == UNLABELLED


def test_what_is_no_single_graph_is_refused(tmp_path, karate):
    data = data_of(karate)
    mixed = HeteroData()
    mixed["a"].x = data.x
    for source in (data.to_dict(), mixed, [data, data], (data.x, data.edge_index, data.y)):
        with pytest.raises(sg.JobError, match="must hold one graph"):
            sg.write_job(source, 2, tmp_path / "job")


@pytest.mark.parametrize(
    ("removed", "first"),
    [(["y"], "y"), (MASKS, "train_mask"), (["y", "val_mask"], "y"), (["test_mask"], "test_mask")],
)
def test_some_labels_without_the_others_are_refused(tmp_path, karate, removed, first):
    data = data_of(karate)
    for name in removed:
        del data[name]
    with refusal(f"The data set mine has no {first}: it must be a", sg.JobError):
        sg.write_job(data, 2, tmp_path / "job", name="mine")


def test_a_job_without_labels(tmp_path, karate, monkeypatch, capsys):
    whole = data_of(karate)
    data, folder = Data(x=whole.x, edge_index=whole.edge_index), tmp_path / "job"
    job = sg.write_job(data, 2, folder, slots=16, name=karate.name)
    assert (job.classes, job.multilabel, job.train, job.validation, job.test) == (0, False, 0, 0, 0)
    assert sg.read_job(folder) == job
    assert job.plan == sg.write_job(karate, 2, tmp_path / "other", slots=16).plan
    for worker in range(2):
        assert set(_data_of(read_part(folder, job, worker)).keys()) == {"x", "edge_index", "n_id"}
    assert {"y", *MASKS} < set(_data_of(read_partition(tmp_path / "other" / "parts", 0)).keys())
    monkeypatch.setattr("sys.argv", ["train", str(folder)])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert re.fullmatch(r"Error: The job \S+ has no labels to .*\.\n", capsys.readouterr().err)


def test_data_without_features_is_refused(tmp_path, karate):
    data = data_of(karate)
    with pytest.raises(sg.JobError, match="has no x"):
        sg.write_job(SimpleNamespace(edge_index=data.edge_index), 2, tmp_path / "job")


@pytest.mark.whole
@pytest.mark.parametrize(
    ("bits", "said"), [(1e6, "The switch pays"), (1e12, "The switch does not pay")]
)
def test_auto_leaves_to_hosts_what_they_do_faster(tmp_path, bits, said):
    """On slow links bytes count, on fast ones barriers."""
    network = NetworkModel(bits_per_second=bits, barrier=1e-3)
    data = load_dataset("digits:80")
    made = sg.write_job(
        *(data, 8, tmp_path / "job"), request=PlanRequest("auto"), slots=10_000, network=network
    )
    assert made.why.startswith(said)
    assert sg.read_job(tmp_path / "job") == made
    everything = said == "The switch does not pay"
    assert (len(made.schedules) > 0) == everything


DENSE = "random:60:1500:1"  # each vertex has neighbours on all workers


@pytest.mark.parametrize(
    ("network", "leaves", "chosen"),
    [
        # Copies and partial sums fill slow links, barriers take as long on any.
        ({"bits_per_second": 1e6}, 0, "switch"),
        ({"barrier": 1.0}, 0, "host-partial"),
        ({"barrier": 1.0}, 2, "switch"),
    ],
)
def test_auto_is_what_the_network_makes_the_fastest(tmp_path, network, leaves, chosen):
    options = {"slots": 10_000, "width": 64, "leaves": leaves, "network": NetworkModel(**network)}
    job = sg.write_job(DENSE, 6, tmp_path / "job", transports=["auto"], **options)
    assert job.why.startswith(f"The transport auto is {chosen}: ")
    assert job_transport(tmp_path, job, "auto").name == chosen
    assert {file.rpartition("-")[0] for file in job.schedules} == {chosen} - {"switch"}
    with refusal("was not written for the transport host: write it again with `switchgnn plan"):
        job_transport(tmp_path, job, "host")


def test_only_transports_of_several_workers_have_jobs(tmp_path, job, karate):
    folder, written = job
    assert job_transport(folder, written, "switch") is SWITCH
    for name in ("auto", "g3"):
        with refusal(f"`switchgnn plan --parts --transport {name}` or write_job(..., transports=["):
            job_transport(folder, written, name)
    for name in ("local", "strawman", "hots"):
        with pytest.raises(TransportError, match=f"No transport '{name}'; known: switch, host, "):
            sg.write_job(karate, 2, folder, transports=[name])
    shared = sg.write_job(karate, 2, folder, slots=8, workers_per_machine=2, transports=["g3"])
    with refusal("The transport g3 is for one worker per machine"):
        job_transport(folder, shared, "g3")
