import errno
import hashlib
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from switchgnn import planner
from switchgnn.base import files as swap
from switchgnn.base.arrays import pack_arrays
from switchgnn.planner.plan import files
from switchgnn.planner.plan.files import ASSIGNMENT_FILE, SWITCH_FILE, worker_file
from switchgnn.planner.plan.manifest import decode_manifest, encode_manifest, seal
from switchgnn.planner.plan.plan import SWITCH_ARRAYS, WORKER_ARRAYS
from tests.planner.helpers import plan_of, refusal_of


def make(seed=0, workers=3):
    return plan_of(planner.load_graph("karate"), workers, 9, seed=seed)


@pytest.fixture(scope="module")
def plan():
    return make()


@pytest.fixture
def folder(plan, tmp_path):
    planner.write_plan(plan, tmp_path / "plan")
    return tmp_path / "plan"


refused = partial(refusal_of, planner.PlannerError)


def same(part, other):
    pairs = [(vars(part)[name], vars(other)[name]) for name in vars(part) if name != "worker"]
    return all(np.array_equal(*pair) for pair in pairs) and all(
        one.dtype == two.dtype for one, two in pairs if one is not None
    )


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_round_trip(plan, folder):
    again = planner.read_plan(folder)
    assert again.manifest == plan.manifest
    assert same(again.switch, plan.switch)
    assert all(same(a, b) for a, b in zip(again.workers, plan.workers, strict=True))
    assert [part.worker for part in again.workers] == [0, 1, 2]
    assert np.array_equal(planner.read_assignment(folder), plan.assignment)
    assert names(folder) == [
        "assignment.safetensors", "plan.json", "switch.safetensors",
        "worker-000.safetensors", "worker-001.safetensors", "worker-002.safetensors",
    ]  # fmt: skip
    assert names(folder.parent) == ["plan"]
    assert folder.stat().st_mode & 0o777 == 0o755
    assert set(load_file(folder / SWITCH_FILE)) == set(SWITCH_ARRAYS)
    assert set(load_file(folder / worker_file(0))) == set(WORKER_ARRAYS)


def test_a_worker_needs_its_own_file_only(folder):
    for name in (SWITCH_FILE, worker_file(0), worker_file(2), ASSIGNMENT_FILE):
        (folder / name).unlink()
    assert planner.read_worker_part(folder, 1).worker == 1
    assert "incomplete" in refused(planner.read_worker_part, folder, 0)
    assert "incomplete" in refused(planner.read_switch_part, folder)
    assert "0 to 2, but not 3" in refused(planner.read_worker_part, folder, 3)
    assert "not -1" in refused(planner.read_worker_part, folder, -1)


@pytest.mark.parametrize("name", [SWITCH_FILE, worker_file(1), ASSIGNMENT_FILE])
def test_a_changed_file_is_refused(folder, name):
    data = bytearray((folder / name).read_bytes())
    data[-100] ^= 1
    (folder / name).write_bytes(data)
    assert name in refused(planner.read_plan, folder)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        *((changes, "changed") for changes in ({"slots": 10}, {"digest": "00"})),
        ({"version": 3}, "version 3, but only version 9 can be read; plan again"),
        ({"version": "1"}, "version '1'"),
        ({"format": "other"}, "not the manifest"),
        ({"extra": 1}, "plan.json is damaged: unknown field extra; known: banks, blocks"),
        ({"slots": "9"}, "slots: expected int, got str"),
    ],
)
def test_a_changed_manifest_is_refused(folder, changes, part):
    path = folder / "plan.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    assert part in refused(planner.read_manifest, folder)


def test_what_is_not_a_manifest_is_refused(folder, tmp_path):
    content = json.loads((folder / "plan.json").read_text())
    del content["slots"]
    (folder / "plan.json").write_text(json.dumps(content))
    assert "missing required field slots" in refused(planner.read_manifest, folder)
    assert "no plan.json" in refused(planner.read_manifest, tmp_path)
    assert "no plan.json" in refused(planner.read_manifest, tmp_path / "missing")
    for data in (b"", b"{", b"[]", b"\xff", b'{"slots": NaN}', b"[" * 100_000, b'{"a":' * 100_000):
        (folder / "plan.json").write_bytes(data)
        assert "plan.json is not the manifest of a plan" in refused(planner.read_manifest, folder)


def forge(plan, folder, name, data):
    (folder / name).write_bytes(data)
    listed = {**plan.manifest.files, name: hashlib.sha256(data).hexdigest()}
    (folder / "plan.json").write_bytes(encode_manifest(seal(replace(plan.manifest, files=listed))))


@pytest.mark.parametrize(
    ("name", "change", "part"),
    [
        ("source_worker", lambda a: a[1:], "array source_worker: it has the shape"),
        ("entry_slot", lambda a: a[:, 1:], "array entry_slot: it has the shape"),
        ("entry_slot", lambda a: a[:, 0], "not a 2-D array of <u4"),
        ("result_slot", lambda a: a[0], "not a 1-D array of <u4"),
        ("receive_count", lambda a: a[1:], "array receive_count: it has the shape"),
        ("send_row_indptr", lambda a: a[:-1], "array send_row_indptr: it has the shape"),
        ("send_indptr", lambda a: a[:-1], "array send_indptr: it has the shape"),
        ("send_indptr", lambda a: a + 1, "does not rise from 0"),
        ("send_row", lambda a: a + 10**9, "array send_row: it has numbers outside 0.."),
        ("receive_row", lambda a: a - 10**9, "array receive_row: it has numbers outside 0.."),
        ("result_worker", lambda a: a + 3, "array result_worker: it has numbers outside 0..2"),
        ("vertices", lambda a: a[::-1], "array vertices: it is not ascending"),
    ],
)
def test_parts_whose_arrays_do_not_fit(plan, folder, name, change, part):
    file, read = worker_file(1), partial(planner.read_worker_part, worker=1)
    if name in SWITCH_ARRAYS:
        file, read = SWITCH_FILE, planner.read_switch_part
    arrays = load_file(folder / file)
    forge(plan, folder, file, pack_arrays(arrays | {name: change(arrays[name])}))
    assert part in refused(read, folder)


def test_a_plan_is_replaced_as_a_whole(folder):
    newer = make(seed=4, workers=2)
    planner.write_plan(newer, folder)
    assert planner.read_plan(folder).manifest == newer.manifest
    assert not (folder / "worker-002.safetensors").exists()
    assert names(folder.parent) == ["plan"]


@pytest.mark.parametrize("step", ["first file", "last file", "swap", "second rename", "killed"])
def test_an_interrupted_write_leaves_the_old_plan(plan, folder, monkeypatch, step):
    rename = Path.rename

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def kill(*_):
        raise KeyboardInterrupt

    def rename_once(self, to):
        return fail() if to == folder and not self.name.endswith(".old") else rename(self, to)

    owner, name, instead = {
        "first file": (Path, "write_bytes", fail),
        "last file": (files, "encode_manifest", fail),
        "swap": (swap, "swap_into_place", fail),
        "second rename": (Path, "rename", rename_once),
        "killed": (swap, "swap_into_place", kill),
    }[step]
    monkeypatch.setattr(owner, name, instead)
    with pytest.raises(KeyboardInterrupt if step == "killed" else planner.PlannerError):
        planner.write_plan(make(seed=4), folder)
    monkeypatch.undo()
    assert planner.read_plan(folder).manifest == plan.manifest
    assert names(folder.parent) == ["plan"]


def test_only_plans_are_overwritten(plan, folder, tmp_path):
    (tmp_path / "thesis").mkdir()
    for free in (tmp_path / "thesis", tmp_path / "a" / "b"):  # an empty folder is no loss
        planner.write_plan(plan, free)
        assert planner.read_manifest(free) == plan.manifest
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("words")
    assert "thesis.tex, which is not part of a plan" in refused(planner.write_plan, plan, other)
    (folder / "notes.txt").write_text("words")
    assert "notes.txt" in refused(planner.write_plan, plan, folder)
    (tmp_path / "file").write_text("words")
    assert "is a file" in refused(planner.write_plan, plan, tmp_path / "file")
    assert "Cannot write" in refused(planner.write_plan, plan, tmp_path / "file" / "plan")
    assert (other / "thesis.tex").exists()
    assert (folder / "notes.txt").exists()


@pytest.mark.parametrize("name", ["\x1b]0;title\x07", "\x1b[2J", "two\nlines", "\x9b1m", "\u202e"])
def test_a_name_that_a_terminal_would_obey_is_refused(plan, name):
    alone = seal(replace(plan.manifest, graph=replace(plan.manifest.graph, name=name)))
    said = refused(decode_manifest, encode_manifest(alone), "plan.json")
    assert "which cannot be printed" in said
    assert said.isprintable()
