"""Loaders of other packages, on tiny files in the formats of the originals; no network."""

import gzip
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from switchgnn.planner import load_graph
from switchgnn.training import DatasetError, load_dataset
from tests.planner.helpers import pairs, reports
from tests.training.helpers import refusal, write_planetoid

EDGES = [(0, 1), (1, 0), (1, 2), (2, 1), (3, 3), (2, 3), (3, 2), (0, 1)]
PROPER = {(u, v) for u, v in EDGES if u != v}
CLASSES = [[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 0, 1]]
FEATURES = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture
def datasets_of_pyg():
    reason = "needs PyTorch Geometric: pip install -e '.[training]'"
    pytest.importorskip("torch", reason=reason)
    return pytest.importorskip("torch_geometric.datasets", reason=reason)


@pytest.mark.parametrize(("name", "gap"), [("cora", False), ("citeseer", True)])
def test_planetoid_as_pyg_reads_it(tmp_path, datasets_of_pyg, name, gap):
    transforms = pytest.importorskip("torch_geometric.transforms")
    write_planetoid(tmp_path / name / "raw", name, gap)
    plain = datasets_of_pyg.Planetoid(str(tmp_path), name)[0]
    theirs = transforms.NormalizeFeatures()(plain.clone())
    ours = load_dataset(name, tmp_path)
    assert set(pairs(ours.graph)) == set(map(tuple, theirs.edge_index.T.tolist()))
    assert len(ours.graph.indices) == theirs.edge_index.shape[1]
    assert np.allclose(ours.features, theirs.x.numpy(), rtol=1e-6)
    unchanged = load_dataset(name, tmp_path, normalize_features=False)
    assert np.array_equal(unchanged.features, plain.x.numpy())
    assert np.array_equal(ours.labels, theirs.y.numpy())
    assert np.array_equal(ours.train, theirs.train_mask.numpy())
    assert np.array_equal(ours.validation, theirs.val_mask.numpy())
    assert np.array_equal(ours.test, theirs.test_mask.numpy())


def test_planetoid_is_downloaded_by_pyg(tmp_path, datasets_of_pyg, monkeypatch):
    def download(self):
        from pathlib import Path  # noqa: PLC0415

        write_planetoid(Path(self.raw_dir))

    monkeypatch.setattr(datasets_of_pyg.Planetoid, "download", download)
    first = load_dataset("cora", tmp_path)
    monkeypatch.undo()
    again = load_dataset("cora", tmp_path)
    assert first.graph.digest() == again.graph.digest()
    assert first.self_loops.tolist() == again.self_loops.tolist() != []


def write_reddit(folder):
    folder.mkdir(parents=True)
    u, v = np.array(EDGES).T
    matrix = scipy.sparse.coo_matrix((np.ones(len(u)), (u, v)), shape=(4, 4))
    scipy.sparse.save_npz(folder / "reddit_graph.npz", matrix)
    np.savez(
        folder / "reddit_data.npz",
        feature=FEATURES,
        label=np.array([0, 1, 2, 1]),
        node_types=np.array([1, 2, 3, 1]),
    )


def write_yelp(folder):
    folder.mkdir(parents=True)
    u, v = np.array(EDGES).T
    matrix = scipy.sparse.csr_matrix((np.ones(len(u)), (u, v)), shape=(4, 4)).astype(bool)
    arrays = {key: getattr(matrix, key) for key in ("data", "indices", "indptr", "shape")}
    np.savez(folder / "adj_full.npz", **arrays)
    np.save(folder / "feats.npy", FEATURES)
    (folder / "class_map.json").write_text(json.dumps(dict(enumerate(CLASSES))))
    (folder / "role.json").write_text(json.dumps({"tr": [0, 3], "va": [1], "te": [2]}))


@pytest.mark.parametrize(
    ("write", "name", "labels"),
    [(write_reddit, "Reddit", [0, 1, 2, 1]), (write_yelp, "yelp", CLASSES)],
)
def test_folders_as_graphsaint_and_dgl_write_them(tmp_path, write, name, labels):
    """Those of PyTorch Geometric, which are known by their names, need it for downloads alone."""
    for folder in ("raw", f"{name}/raw"):
        write(tmp_path / folder)
        named, data = load_dataset(name, tmp_path), load_dataset(str(tmp_path / folder))
        for each in (named, data):
            check(each)
            assert each.labels.tolist() == labels
            assert each.multilabel == (labels is CLASSES)
        assert named.name == name.lower()
        assert load_graph(str(tmp_path / folder)).digest() == data.graph.digest()
        shutil.rmtree(tmp_path / folder)


@pytest.mark.parametrize(
    ("write", "missing", "part"),
    [
        (write_yelp, "role.json", "Cannot read"),
        (write_yelp, "adj_full.npz", "or a folder with adj_full.npz or reddit_graph.npz"),
        (write_reddit, "reddit_data.npz", "no array features"),
    ],
)
def test_a_folder_that_lacks_a_file(tmp_path, write, missing, part):
    write(tmp_path / "mine")
    (tmp_path / "mine" / missing).unlink()
    with refusal(part):
        load_dataset(str(tmp_path / "mine"))


def write_products(folder):
    """OGB's files hold each edge once; its loader adds the other direction."""
    tables = {
        "raw/edge": [(0, 1), (1, 2), (3, 3), (2, 3)],
        "raw/node-feat": FEATURES.tolist(),
        "raw/node-label": [[0], [1], [2], [1]],
        "raw/num-node-list": [[4]],
        "raw/num-edge-list": [[4]],
        "split/sales_ranking/train": [[0], [3]],
        "split/sales_ranking/valid": [[1]],
        "split/sales_ranking/test": [[2]],
    }
    for name, rows in tables.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt") as file:
            file.writelines(",".join(map(str, row)) + "\n" for row in rows)
    (folder / "processed").mkdir()
    (folder / "RELEASE_v1.txt").write_text("")


@pytest.fixture
def ogb():
    return pytest.importorskip("ogb.nodeproppred", reason="needs OGB: pip install -e '.[ogb]'")


def test_products(tmp_path, ogb, capsys, monkeypatch):
    write_products(tmp_path / "ogbn_products")
    for _ in range(2):
        data = load_dataset("ogbn-products", tmp_path)
        check(data)
        assert data.labels.tolist() == [0, 1, 2, 1]
        monkeypatch.setitem(sys.modules, "ogb", None)  # the second time needs no OGB
        monkeypatch.setitem(sys.modules, "ogb.nodeproppred", None)
    assert capsys.readouterr().out == ""


def test_the_pickle_that_ogb_keeps_is_not_read(tmp_path):
    write_products(tmp_path / "ogbn_products")
    (tmp_path / "ogbn_products/processed/data_processed").write_bytes(b"")
    with refusal("delete it", DatasetError):
        load_dataset("ogbn-products", tmp_path)


def check(data):
    assert set(pairs(data.graph)) == PROPER
    assert data.undirected
    assert data.self_loops.tolist() == [3]
    assert np.array_equal(data.features, FEATURES)
    assert data.classes == 3
    assert data.train.tolist() == [True, False, False, True]
    assert data.validation.tolist() == [False, True, False, False]
    assert data.test.tolist() == [False, False, True, False]


@pytest.mark.parametrize("name", ["Planetoid", "Reddit"])
def test_a_failed_download_is_one_sentence(tmp_path, datasets_of_pyg, monkeypatch, name):
    def download(self):
        raise OSError("no route to host\nat line 7")

    monkeypatch.setattr(getattr(datasets_of_pyg, name), "download", download)
    key = {"Planetoid": "pubmed"}.get(name, name.lower())
    with reports(key, str(tmp_path / key), "no route to host", kind=DatasetError):
        load_dataset(key, tmp_path)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("cora", "torch_geometric", "training"), ("ogbn-products", "ogb", "ogb")],
)
def test_a_missing_package_is_named(tmp_path, monkeypatch, name, package, extra):
    for module in (package, f"{package}.datasets", f"{package}.nodeproppred"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("switchgnn.base.machine.checkout", Path.cwd)
    with reports(f"needs {package}", f"pip install -e '.[{extra}]'", kind=DatasetError):
        load_dataset(name, tmp_path)


def test_karate():
    data = load_dataset("Karate")
    assert np.array_equal(data.features, np.eye(34))
    assert (data.classes, len(data.self_loops)) == (2, 0)
