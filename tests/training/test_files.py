import json
from functools import partial

import numpy as np
import pytest

from switchgnn.base.errors import SwitchGNNError
from switchgnn.training import load_files
from tests.planner.helpers import refusal_of
from tests.training.helpers import refusal

ROWS = [[0.5, 1, 0], [2, 0, 0], [0, 0, 0], [0, 4, 1]]
TABLE = "id,a,b,c\n3,0,4,1\n0,0.5,1,0\n1,2,0,0\n2,0,0,0\n"
NAMES = 'id,page,kind\n0,"A, B",tv\n2,x,shop\n1,"two\nlines",shop\n3,y,news\n'
USUAL = ("f.npy", np.array(ROWS))


@pytest.fixture
def write(tmp_path):
    def save(name, content):
        path = tmp_path / name
        if isinstance(content, np.ndarray):
            np.save(path, content)
        elif isinstance(content, dict):
            path.write_text(json.dumps(content))
        else:
            path.write_text(content, encoding="utf-8")
        return path

    return save


@pytest.fixture
def load(write):
    """Load from the contents of files, each with a default."""

    def from_contents(
        edges="0 1\n1 2\n2 2\n2 3\n",
        features=USUAL,
        labels=("l.txt", "0\n1\n1\n0\n"),
        split=None,
        **options,
    ):
        if split is not None:
            options["split"] = write(*split)
        return load_files(write("e.txt", edges), write(*features), write(*labels), **options)

    return from_contents


@pytest.fixture
def refused(load):
    return partial(refusal_of, SwitchGNNError, load)


@pytest.mark.parametrize(
    "features",
    [
        ("f.npy", np.array(ROWS)),
        ("f.npy", np.array(ROWS, dtype=np.float16)),
        ("f.csv", TABLE),
        ("f.csv", TABLE.partition("\n")[2]),
        ("F.CSV", "\ufeff" + TABLE.replace(",", ", ").replace("\n", "\r\n")),
    ],
)
def test_features(load, features):
    data = load(features=features)
    assert np.array_equal(data.features, ROWS)
    assert data.features.dtype == np.float32
    assert data.name == "e"
    assert data.self_loops.tolist() == [2]
    assert data.undirected


def test_features_as_lists_of_numbers(load):
    data = load(features=("f.json", {"3": [1, 4], "0": [0, 0], "1": [], "2": [2]}))
    assert data.features.tolist() == [
        [1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 1, 0, 0, 1]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (("l.txt", "1\n0\n0\n2\n"), [1, 0, 0, 2]),
        (("l.npy", np.array([1, 0, 0, 2], dtype=np.uint8)), [1, 0, 0, 2]),
        (("l.csv", "2,0\n0,1\n1,0\n3,2\n"), [1, 0, 0, 2]),
        (("l.csv", NAMES), [2, 1, 1, 0]),
        (("l.labels", "b\n-1\n\na"), [1, -1, -1, 0]),
        (("l.csv", "0,b\n3,a\n1,\n"), [1, -1, -1, 0]),
        (("l.npy", np.array([1, -1, -1, 0])), [1, -1, -1, 0]),
        (("l.npy", np.array([1, np.nan, -1, 0])), [1, -1, -1, 0]),
        (("l.npy", np.array([[1.0], [0], [0], [2]])), [1, 0, 0, 2]),
        # Of two classes a column is no multi-label either.
        (("l.npy", np.array([[1], [0], [0], [1]])), [1, 0, 0, 1]),
        (("l.txt", "1.0\n0\n+0.\n2e0\n"), [1, 0, 0, 2]),
        (("l.json", {"2": 0, "0": 1.0, "1": 0, "3": 2}), [1, 0, 0, 2]),
        (("l.json", {"3": "a", "0": "b", "1": None}), [1, -1, -1, 0]),
    ],
)
def test_labels(load, labels, expected):
    data = load(labels=labels)
    assert data.labels.tolist() == expected
    assert data.labels.dtype == np.int64
    assert data.classes == max(expected) + 1
    in_split = data.train | data.validation | data.test
    assert in_split.tolist() == [label >= 0 for label in expected]


def test_classes_as_numpy_writes_them(tmp_path, load):
    """Classes are in numeric order: 1e+01 follows 2e+00, though not as text."""
    classes = np.array([10, 2, 0, 1, 3, 4, 5, 6, 7, 8, 9, -1])
    for kind in (np.int64, np.float64):
        np.savetxt(tmp_path / "saved.txt", classes.astype(kind))
        data = load(
            edges="".join(f"{u} {u + 1}\n" for u in range(11)),
            features=("f.npy", np.ones((12, 1))),
            labels=("l.txt", (tmp_path / "saved.txt").read_text()),
        )
        assert data.labels.tolist() == classes.tolist()


# What NumPy, pandas, R and C write, and ourselves.
MISSING = (
    *("", "-1", "-1.0", "-1.", "-1.000e+00", "-1.000000000000000000e+00", "nan", "NaN", "-nan"),
    *("NAN", "NA", "N/A", "n/a", "#N/A", "<NA>", "None", "null", "NULL", "NaT", "-1.#IND"),
)


@pytest.mark.parametrize("word", MISSING)
@pytest.mark.parametrize(("one", "other"), [("1", "0"), ("1.0", "0.0"), ("b", "a")])
def test_a_missing_label_has_many_spellings(load, word, one, other):
    for labels in (
        ("l.txt", f"{one}\n{word}\n{word}\n{other}\n"),
        ("l.csv", f"id,x\n0,{one}\n1,{word}\n2,{word}\n3,{other}\n"),
    ):
        data = load(labels=labels)
        assert data.labels.tolist() == [1, -1, -1, 0]
        assert data.classes == 2


def test_a_column_of_labels_by_name(load):
    data = load(labels=("l.csv", NAMES.replace("two\nlines", "x")), label_column="page")
    assert data.labels.tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("kind", [np.int64, bool, np.float64])
def test_multilabel(load, kind):
    table = np.array([[1, 0], [1, 1], [0, 0], [0, 1]], dtype=kind)
    data = load(labels=("l.npy", table))
    lists = {str(vertex): table[vertex].tolist() for vertex in (3, 1, 0, 2)}
    for each in (data, load(labels=("l.json", lists))):
        assert each.multilabel
        assert np.array_equal(each.labels, table)
        assert each.labels.dtype == np.float32


@pytest.mark.parametrize(
    "split",
    [
        ("s.txt", "train\nnone\ntest\nvalidation\n"),
        ("s.txt", "train\n\ntest\nvalidation"),
        ("s.csv", "id,part\n3,validation\n0,train\n2,test\n"),
        ("s.json", {"te": [2], "tr": [0], "va": [3]}),
    ],
)
def test_split(load, split):
    data = load(split=split)
    assert data.train.tolist() == [True, False, False, False]
    assert data.validation.tolist() == [False, False, False, True]
    assert data.test.tolist() == [False, False, True, False]


def test_options(load):
    data = load(directed=True, name="mine", normalize_features=True)
    assert data.name == "mine"
    assert not data.undirected
    assert np.allclose(data.features.sum(axis=1), [1, 1, 0, 1])


def test_ids_that_were_renumbered(load):
    data = load(
        edges="1000 7\n7 500\n500 90\n",
        features=("f.csv", "7,1\n90,2\n500,3\n1000,4\n"),
        labels=("l.csv", "1000,1\n7,0\n90,0\n500,0\n"),
        split=("s.csv", "7,train\n1000,test\n"),
    )
    assert data.graph.original_ids.tolist() == [7, 90, 500, 1000]
    assert data.features.ravel().tolist() == [1, 2, 3, 4]
    assert data.labels.tolist() == [0, 0, 0, 1]
    assert data.test.tolist() == [False, False, False, True]
    by_row = load(edges="1000 7\n7 500\n500 90\n", features=("f.npy", np.arange(4.0)[:, None]))
    assert by_row.features.ravel().tolist() == [0, 1, 2, 3]


def test_a_gap_between_ids_needs_neither_features_nor_label(load):
    data = load(
        edges="1 2\n2 3\n",
        features=("f.csv", "1,5\n2,6\n3,7\n"),
        labels=("l.csv", "1,0\n2,1\n3,0\n"),
    )
    assert data.features.ravel().tolist() == [0, 5, 6, 7]
    assert data.labels.tolist() == [-1, 0, 1, 0]


LINE = "1 2\n2 4\n4 5\n"  # 3 is isolated
FIVE = ("f.npy", np.arange(5.0)[:, None])
FIVE_LABELS = ("l.txt", "0\n1\n0\n1\n0\n")


@pytest.mark.parametrize(
    ("contents", "ids", "edges"),
    [
        ({"features": FIVE, "labels": FIVE_LABELS}, [1, 2, 3, 4, 5], 3),
        ({"features": ("f.csv", "id,a\n1,0\n2,1\n3,2\n4,3\n5,4\n"), "labels": FIVE_LABELS},
         [1, 2, 3, 4, 5], 3),
        ({"edges": "0 1\n1 3\n", "features": FIVE, "labels": FIVE_LABELS}, None, 2),
        ({"edges": "0 1\n1 3\n", "features": ("f.csv", "4,4\n0,0\n1,1\n2,2\n3,3\n"),
          "labels": ("l.csv", "4,0\n1,1\n")}, None, 2),
        ({"edges": "10 20\n40 40\n", "features": ("f.json", {"40": [0], "10": [0], "30": [0],
          "20": [0], "50": []}), "labels": FIVE_LABELS}, [10, 20, 30, 40, 50], 1),
        ({"edges": "5 9\n8 6\n6 0\n", "features": FIVE, "labels": FIVE_LABELS},
         [0, 5, 6, 8, 9], 3),
    ],
)  # fmt: skip
def test_vertices_that_no_edge_names(load, contents, ids, edges):
    data = load(**({"edges": LINE} | contents))
    assert (data.vertices, len(data.graph.indices)) == (5, 2 * edges)
    assert (None if ids is None else ids) == (
        None if data.graph.original_ids is None else data.graph.original_ids.tolist()
    )
    if data.features.max() == 4:
        assert data.features.ravel().tolist() == [0, 1, 2, 3, 4]


def test_names_as_ids(load):
    data = load(
        edges="from;to\nbob;ann\nbob;cy\n",
        features=("f.csv", "id;a\ncy;3\nann;1\nbob;2\ndan;4\n"),
        labels=("l.csv", "cy,0\nann,1\ndan,1\n"),
        split=("s.csv", "name,part\ncy,train\n"),
    )
    assert data.graph.original_ids.tolist() == ["ann", "bob", "cy", "dan"]
    assert data.features.ravel().tolist() == [1, 2, 3, 4]
    assert data.labels.tolist() == [1, -1, 0, 1]
    assert np.flatnonzero(data.train).tolist() == [2]
    data = load(
        edges="x y\ny z\nz w\n", features=("f.json", {"w": [1], "x": [0], "y": [0], "z": []})
    )
    assert data.features.argmax(axis=1).tolist() == [1, 0, 0, 0]


def test_ids_as_pandas_writes_them(load):
    data = load(features=("f.csv", ',a\n"3.0",1\n0.0,2\n1.0,3\n2.0,4\n'))
    assert data.features.ravel().tolist() == [2, 3, 4, 1]


def test_graphs_in_other_formats_than_text(write, load):
    """`--edges` takes what `--graph` takes; matrices are as stored."""
    edges = write("e.npy", np.array([[0, 1], [1, 2], [2, 3]]))
    features, labels = write(*USUAL), write("l.txt", "0\n1\n1\n0\n")
    assert load_files(edges, features, labels).graph.digest() == load().graph.digest()
    weighted = load(edges="0 1 5\n1 2 5\n2 3 5\n", edge_weights=False)
    assert weighted.graph.digest() == load().graph.digest()


def test_a_split_of_the_graphs_file_is_the_split(write, load):
    """A split file has precedence; isolated vertices move those of the masks."""
    masks = {"train_mask": [1, 0, 0, 0], "val_mask": [0, 0, 0, 1], "test_mask": [0, 1, 0, 0]}
    masks = {name: np.array(mask, dtype=bool) for name, mask in masks.items()}
    edges = write("e.txt", "").with_suffix(".npz")
    np.savez(edges, edge_index=np.array([[1, 2, 4], [2, 4, 5]]), **masks)
    features, labels = write(*FIVE), write(*FIVE_LABELS)
    data = load_files(edges, features, labels)
    assert data.graph.original_ids.tolist() == [1, 2, 3, 4, 5]
    parts = (data.train, data.validation, data.test)
    assert [np.flatnonzero(part).tolist() for part in parts] == [[0], [4], [1]]
    assert load_files(edges, features, labels, split=write("s.txt", "train\n" * 5)).train.all()
    # Vertex 3 has no edges, and the features name one more.
    np.savez(edges, edge_index=np.array([[0, 1], [1, 2]]), num_nodes=4, **masks)
    more = load_files(edges, write("f.csv", "0,0\n1,1\n2,2\n3,3\n4,4\n"), labels)
    assert (more.vertices, np.flatnonzero(more.validation).tolist()) == (5, [3])


NAN = np.array(ROWS)
NAN[1, 1] = np.nan


BAD = {
    "features": [
        (("f.npy", np.ones((5, 2))), "l.txt has 4 rows, but graph e has 5 vertices"),
        (("f.npy", np.ones((3, 2))), "3 rows, but graph e has 4 vertices, 0 to 3; give one"),
        (("f.npy", np.ones(4)), "not a 2-D array of floats"),
        (("f.npy", "junk"), "not an array of NumPy"),
        (("f.npy", NAN), "vertex 1"),
        (("f.npy", np.array(ROWS) * 1e300), "infinity"),
        (("f.csv", TABLE.replace("2,0,0,0\n", "")), "lacks vertex 2"),
        (("f.csv", TABLE.replace("\n2,", "\n4,")), "names vertex 4, which is not"),
        (("f.csv", TABLE.replace("\n2,", "\n-1,")), "'-1' is not the id"),
        (("f.csv", TABLE.replace("\n2,", "\n1,")), "names vertex 1 twice"),
        (("f.csv", TABLE.replace("\n2,0,0", "\n2,0")), "line 5: has 3 columns; expected 4"),
        (("f.csv", TABLE.replace("0.5", "half")), "line 3: "),
        (("f.csv", "0\n1\n"), "line 1: has 1 columns; expected 2"),
        (("f.csv", "id,a\n"), "no rows"),
        (("f.json", "{"), "not JSON"),
        (("f.json", "[" * 100_000), "not JSON"),
        (("f.json", {"a": [1]}), "f.json: 'a' is not the id"),
        (("f.json", {"0": 1}), "no whole number"),
        (("f.json", {"0": [0.5]}), "no whole number"),
        (("f.json", {"0": [], "1": []}), "no features"),
        (("f.json", {"0": [1], "00": []}), "twice"),
        (("f.json", {"9": [1]}), "names vertex 9"),
        (("f.json", {"0": [1]}), "lacks vertex 1 and 2 others"),
        (("f.xlsx", "x"), ".npy, .csv or .json"),
    ],
    "labels": [
        (("l.txt", "0\n1\n1\n"), "3 rows, but graph e has 4 vertices"),
        (("l.txt", "\n\n\n"), "0 rows"),
        (("l.txt", "\n-1\n-1\n-1\n"), "no labels"),
        (("l.txt", "0\n1\nx\n1\n"), "also 'x'"),
        (("l.txt", "0\n1\n-2\n1\n"), "label -2"),
        (("l.txt", "0\n1\n0.5\n1\n"), "label 0.5"),
        (("l.txt", "0\n1\ninf\n1\n"), "also 'inf'"),
        (("l.txt", "0 1\n1 0\n0 1\n1 0\n"), "'0 1' as the label of one vertex"),
        (("l.txt", "0\n1\n100\n1\n"), "label 100, but only 4 vertices"),
        (("l.csv", "0,1\n9,1\n"), "names vertex 9"),
        (("l.csv", "0,1\n0,1\n"), "twice"),
        (("l.csv", "0,\n1,\n"), "no labels"),
        (("l.npy", np.array([0.0, 0.5, 1, 1])), "label 0.5"),
        (("l.npy", np.array([0, 2**64 - 1, 1, 1], dtype=np.uint64)), "label 18446744073709551615"),
        (("l.npy", np.array(1)), "not a 1-D or 2-D array"),
        (("l.npy", np.full((4, 2), 0.5)), "zeros and ones"),
        (("l.json", "[0, 1]"), 'the form {"id": class, ...}'),
        (("l.json", {"0": 1, "x": 1}), "l.json: 'x' is not the id"),
        (("l.json", {}), "no labels"),
        *(
            (("l.json", {"0": one, "1": other}), "a zero or a one for each class")
            for one, other in ((0, {}), ([0, 1], [1]), ([0, 1], [1, 2]))
        ),
        (("l.json", {"0": [0, 1], "1": [1, 0]}), "for each vertex of the graph"),
    ],
    "split": [
        (("s.txt", "train\n"), "1 rows"),
        (("s.txt", "train\ntest\nx\n\nnone\n"), "5 rows"),
        (("s.txt", "train\ntest\nx\nnone\n"), "'x'"),
        (("s.csv", "9,train\n"), "names vertex 9"),
        (("s.csv", "0,test\n"), "no vertices to train on"),
        (("s.json", {}), "no vertices to train on"),
        (("s.json", {"tr": [0, 1], "va": [1]}), "names vertex 1 twice"),
        (("s.json", {"tr": 3}), '{"tr": [id, ...]'),
        (("s.json", {"tr": [[0]]}), "s.json: '[0]' is not the id"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "content", "part"), [(kind, *case) for kind, cases in BAD.items() for case in cases]
)
def test_a_bad_file(refused, kind, content, part):
    assert part in refused(**{kind: content})


def test_no_such_column(refused):
    assert "the columns page, kind" in refused(labels=("l.csv", NAMES), label_column="colour")
    assert "no header" in refused(labels=("l.csv", "0,1\n"), label_column="colour")
    assert "only a .csv" in refused(label_column="colour")


def test_missing_and_unreadable_files(tmp_path, write):
    edges = write("e.txt", "0 1\n")
    for features in (tmp_path / "no.npy", tmp_path / "no.csv", tmp_path / "no.json"):
        with refusal(f"Cannot read {features}"):
            load_files(edges, features, tmp_path / "no.txt")


def test_features_that_no_memory_holds(refused):
    edges = "\n".join(f"{u} {u + 1}" for u in range(2_000))
    lists = {str(u): [2**31 - 1] for u in range(2_001)}
    assert "do not fit into memory" in refused(edges=edges, features=("f.json", lists))
