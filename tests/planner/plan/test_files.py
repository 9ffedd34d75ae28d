# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
import errno
import hashlib
import json
import pickle
import time
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from switchgnn.base import files as swap
from switchgnn.base.arrays import pack_arrays
from switchgnn.planner import (
    PlannerError,
    build_plan,
    load_graph,
    read_assignment,
    read_manifest,
    read_plan,
    read_switch_part,
    read_worker_part,
    write_plan,
)
from switchgnn.planner.plan import files
from switchgnn.planner.plan.banks import SWITCH_ARRAYS, WORKER_ARRAYS
from switchgnn.planner.plan.manifest import decode_manifest, encode_manifest, seal
from tests.planner.helpers import one_sentence


def make(seed=0, workers=3):
    return build_plan(load_graph("karate"), workers=workers, slots=9, program="ab", seed=seed)


@pytest.fixture(scope="module")
def plan():
    return make()


@pytest.fixture
def folder(plan, tmp_path):
    write_plan(plan, tmp_path / "plan")
    return tmp_path / "plan"


def refused(function, *arguments):
    with pytest.raises(PlannerError) as error:
        function(*arguments)
    return one_sentence(error)


def same(part, other):
    return all(
        np.array_equal(getattr(part, field.name), getattr(other, field.name))
        and np.asarray(getattr(part, field.name)).dtype
        == np.asarray(getattr(other, field.name)).dtype
        for field in fields(part)
        if field.name != "worker"
    )


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_round_trip(plan, folder):
    again = read_plan(folder)
    assert again.manifest == plan.manifest
    assert same(again.switch, plan.switch)
    assert all(same(a, b) for a, b in zip(again.workers, plan.workers, strict=True))
    assert [part.worker for part in again.workers] == [0, 1, 2]
    assert np.array_equal(read_assignment(folder), plan.assignment)
    assert sorted(contents(folder)) == [
        "assignment.safetensors", "plan.json", "switch.safetensors",
        "worker-000.safetensors", "worker-001.safetensors", "worker-002.safetensors",
    ]  # fmt: skip
    assert names(folder.parent) == ["plan"]


def test_a_plan_without_blocks(tmp_path):
    empty = build_plan(load_graph("karate"), workers=1, slots=9, program="ab")
    write_plan(empty, tmp_path / "p")
    assert same(read_plan(tmp_path / "p").workers[0], empty.workers[0])


def test_files_are_the_same_bytes_every_time(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 2e9)
    write_plan(make(), tmp_path / "again")
    assert contents(folder) == contents(tmp_path / "again")


def test_the_manifest_names_each_file(folder):
    manifest = json.loads((folder / "plan.json").read_text())
    others = {name: data for name, data in contents(folder).items() if name != "plan.json"}
    assert manifest["files"] == {n: hashlib.sha256(d).hexdigest() for n, d in others.items()}


def test_safetensors_reads_the_files(folder):
    assert set(load_file(folder / "switch.safetensors")) == set(SWITCH_ARRAYS)
    assert set(load_file(folder / "worker-000.safetensors")) == set(WORKER_ARRAYS)


def test_a_worker_needs_its_own_file_only(folder):
    for name in (
        "switch.safetensors",
        "worker-000.safetensors",
        "worker-002.safetensors",
        "assignment.safetensors",
    ):
        (folder / name).unlink()
    assert read_worker_part(folder, 1).worker == 1
    assert "incomplete" in refused(read_worker_part, folder, 0)
    assert "incomplete" in refused(read_switch_part, folder)


def test_no_such_worker(folder):
    assert "0 to 2, but not 3" in refused(read_worker_part, folder, 3)
    assert "not -1" in refused(read_worker_part, folder, -1)


@pytest.mark.parametrize(
    "name", ["switch.safetensors", "worker-001.safetensors", "assignment.safetensors"]
)
def test_a_changed_file_is_refused(folder, name):
    data = bytearray((folder / name).read_bytes())
    data[-100] ^= 1
    (folder / name).write_bytes(data)
    assert name in refused(read_plan, folder)


def test_exchanged_worker_files_are_refused(folder):
    one, two = folder / "worker-001.safetensors", folder / "worker-002.safetensors"
    first = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(first)
    assert "does not belong" in refused(read_worker_part, folder, 1)


GRAPH = {"name": "g", "vertices": 2, "edges": 1, "digest": "00"}


def edit(folder, **changes):
    path = folder / "plan.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"slots": 10}, "changed"),
        ({"digest": "00"}, "changed"),
        ({"version": 3}, "version 3, but only version 7 can be read; plan again"),
        ({"version": "1"}, "version '1'"),
        ({"format": "other"}, "not the manifest"),
        ({"extra": 1}, "plan.json is damaged: unknown field extra; known: banks, blocks"),
        ({"slots": "9"}, "slots: expected int, got str"),
        ({"slots": 9.0}, "slots: expected int, got float"),
        ({"slots": True}, "slots: expected int, got bool"),
        ({"graph": None}, "graph: expected object, got null"),
        ({"graph": {"name": "g"}}, "graph: object missing required field vertices"),
        ({"graph": GRAPH | {"hue": 1}}, "graph: unknown field hue; known: digest, edges"),
        ({"files": {"switch.safetensors": 1}}, "files[...]: expected str, got int"),
        ({"directions": {"forward": [1, 2]}}, "directions[...]: expected object, got array"),
    ],
)
def test_a_changed_manifest_is_refused(folder, changes, part):
    edit(folder, **changes)
    assert part in refused(read_manifest, folder)


def test_what_is_not_a_manifest_is_refused(folder, tmp_path):
    assert "no plan.json" in refused(read_manifest, tmp_path)
    assert "no plan.json" in refused(read_manifest, tmp_path / "missing")
    for data in (b"", b"{", b"[]", b"\xff", b'{"slots": NaN}', b"[" * 100_000, b'{"a":' * 100_000):
        (folder / "plan.json").write_bytes(data)
        assert "plan.json is not the manifest of a plan" in refused(read_manifest, folder)


def test_a_missing_field_is_named(folder):
    path = folder / "plan.json"
    content = json.loads(path.read_text())
    del content["slots"]
    path.write_text(json.dumps(content))
    assert "missing required field slots" in refused(read_manifest, folder)


def test_numbers_of_any_size_come_back(plan):
    strategy = replace(plan.manifest.strategy, seed=10**30, weight=0.1)
    large = seal(replace(plan.manifest, strategy=strategy))
    assert decode_manifest(encode_manifest(large), "plan.json") == large


def forge(plan, folder, name, data):
    (folder / name).write_bytes(data)
    listed = {**plan.manifest.files, name: hashlib.sha256(data).hexdigest()}
    (folder / "plan.json").write_bytes(encode_manifest(seal(replace(plan.manifest, files=listed))))


def test_forged_files_run_no_pickles_and_need_the_right_arrays(plan, folder):
    for data in (pickle.dumps(print), b"", b"PK"):
        forge(plan, folder, "switch.safetensors", data)
        assert "switch.safetensors" in refused(read_switch_part, folder)
        forge(plan, folder, "assignment.safetensors", data)
        assert "assignment.safetensors" in refused(read_assignment, folder)
    forge(plan, folder, "switch.safetensors", (folder / "worker-000.safetensors").read_bytes())
    assert "no array source_vertex" in refused(read_switch_part, folder)


@pytest.mark.parametrize(
    ("which", "name", "change", "part"),
    [
        ("switch", "source_worker", lambda a: a[1:], "arrays source_* differ in length"),
        (
            "switch",
            "entry_slot",
            lambda a: a[:, 1:],
            "entry_slot and entry_expected differ in shape",
        ),
        ("switch", "entry_slot", lambda a: a[:, 0], "not a 2-D array of <u4"),
        ("switch", "result_slot", lambda a: a[0], "not a 1-D array of <u4"),
        (
            "worker",
            "receive_count",
            lambda a: a[1:],
            "receive_count and receive_vertex differ in length",
        ),
        ("worker", "send_row_indptr", lambda a: a[:-1], "is not one longer than send_source"),
        ("worker", "send_indptr", lambda a: a[:-1], "is not for"),
        ("worker", "send_indptr", lambda a: a + 1, "does not rise from 0"),
        ("worker", "send_row", lambda a: a + 10**9, "a row that the worker does not have"),
        ("worker", "receive_row", lambda a: a - 10**9, "a row that the worker does not have"),
    ],
)
def test_parts_whose_arrays_do_not_fit(plan, folder, which, name, change, part):
    file = {"switch": "switch.safetensors", "worker": "worker-001.safetensors"}[which]
    read = {"switch": read_switch_part, "worker": partial(read_worker_part, worker=1)}[which]
    arrays = load_file(folder / file)
    forge(plan, folder, file, pack_arrays(arrays | {name: change(arrays[name])}))
    assert part in refused(read, folder)


def test_a_plan_is_replaced_as_a_whole(folder):
    newer = make(seed=4, workers=2)
    write_plan(newer, folder)
    assert read_plan(folder).manifest == newer.manifest
    assert not (folder / "worker-002.safetensors").exists()
    assert names(folder.parent) == ["plan"]


def test_without_an_exchange_in_one_step(folder, monkeypatch):
    monkeypatch.setattr(swap, "_exchange", lambda *_: False)
    newer = make(seed=4)
    write_plan(newer, folder)
    assert read_plan(folder).manifest == newer.manifest
    assert names(folder.parent) == ["plan"]


@pytest.mark.parametrize("step", ["first file", "last file", "swap", "second rename"])
def test_an_interrupted_write_leaves_the_old_plan(plan, folder, monkeypatch, step):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    if step == "first file":
        monkeypatch.setattr(Path, "write_bytes", fail)
    elif step == "last file":
        monkeypatch.setattr(files, "encode_manifest", fail)
    elif step == "swap":
        monkeypatch.setattr(swap, "swap_into_place", fail)
    else:
        rename = Path.rename
        monkeypatch.setattr(swap, "_exchange", lambda *_: False)
        monkeypatch.setattr(
            Path,
            "rename",
            lambda self, to: (
                fail() if to == folder and not self.name.endswith(".old") else rename(self, to)
            ),
        )
    assert "No space left" in refused(write_plan, make(seed=4), folder)
    monkeypatch.undo()
    assert read_plan(folder).manifest == plan.manifest
    assert names(folder.parent) == ["plan"]


def test_a_killed_write_leaves_the_old_plan(plan, folder, monkeypatch):
    def kill(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(swap, "swap_into_place", kill)
    with pytest.raises(KeyboardInterrupt):
        write_plan(make(seed=4), folder)
    assert read_plan(folder).manifest == plan.manifest


def test_only_plans_are_overwritten(plan, folder, tmp_path):
    precious = tmp_path / "thesis"
    precious.mkdir()
    write_plan(plan, precious)  # an empty folder is no loss
    assert read_manifest(precious) == plan.manifest
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("words")
    assert "not a plan" in refused(write_plan, plan, other)
    (folder / "notes.txt").write_text("words")
    assert "notes.txt" in refused(write_plan, plan, folder)
    (tmp_path / "file").write_text("words")
    assert "is a file" in refused(write_plan, plan, tmp_path / "file")
    assert "cannot write" in refused(write_plan, plan, tmp_path / "file" / "plan")
    assert (other / "thesis.tex").exists()
    assert (folder / "notes.txt").exists()


def test_others_may_read_the_plan(folder):
    assert folder.stat().st_mode & 0o777 == 0o755


def test_missing_parents_are_made(plan, tmp_path):
    write_plan(plan, tmp_path / "a" / "b")
    assert read_manifest(tmp_path / "a" / "b") == plan.manifest


@pytest.mark.parametrize("name", ["\x1b]0;title\x07", "\x1b[2J", "two\nlines", "\x9b1m", "\u202e"])
def test_a_name_that_a_terminal_would_obey_is_refused(plan, name):
    manifest = plan.manifest
    alone = seal(replace(manifest, graph=replace(manifest.graph, name=name)))
    said = refused(decode_manifest, encode_manifest(alone), "plan.json")
    assert "which cannot be printed" in said
    assert said.isprintable()
