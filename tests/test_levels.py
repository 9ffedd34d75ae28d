# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The sets of tests: what `make test` leaves to `make test-all` is a variation and no promise."""

import itertools
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.bare_path import OPTIONAL, bare_path
from tests.support.levels import SHARED, WHOLE, group_of, in_share, is_whole
from tests.support.markers import covering, some_of

AXES = st.lists(st.integers(1, 4), min_size=2, max_size=4)


def is_full(param):
    return any(mark.name == "full" for mark in param.marks)


@given(AXES)
def test_every_pair_of_values_is_covered(sizes):
    params = covering(*map(range, sizes))
    assert len(params) == len({param.values for param in params})
    assert {param.values for param in params} == set(itertools.product(*map(range, sizes)))
    kept = [param.values for param in params if not is_full(param)]
    for one, other in itertools.combinations(range(len(sizes)), 2):
        pairs = {(values[one], values[other]) for values in kept}
        assert pairs == set(itertools.product(range(sizes[one]), range(sizes[other])))


def test_covering_keeps_fewer_than_all():
    params = covering(range(5), range(3), range(2))
    assert sum(not is_full(param) for param in params) <= 18


def test_marks_and_names_of_values_stay():
    slow = pytest.param("b", "c", marks=pytest.mark.whole, id="two")
    params = some_of(lambda one, other: other == 1, [1, 2], ["a", slow])
    assert [param.id for param in params] == ["1-a", "1-two", "2-a", "2-two"]
    assert [is_full(param) for param in params] == [True, False, True, False]
    assert params[3].values == (2, "b", "c")
    assert [mark.name for mark in params[3].marks] == ["whole"]


def test_shares_differ_and_repeat():
    names = [f"tests/test_{number}.py::test" for number in range(4000)]
    shares = [{name for name in names if in_share(name, f"10:{seed}")} for seed in "ab"]
    assert shares[0] == {name for name in names if in_share(name, "10:a")}
    assert all(300 < len(share) < 500 for share in shares)
    assert len(shares[0] & shares[1]) < 100


def test_a_bare_path_has_all_but_the_optional_programs(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("ours", *OPTIONAL):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    bare = bare_path(os.pathsep.join([str(folder), "/nowhere"]))
    assert shutil.which("ours", path=str(bare)) is not None
    assert not any(shutil.which(name, path=str(bare)) for name in OPTIONAL)


def test_tests_of_one_switch_run_in_one_process():
    ptf = "tests/ptf/test_ptf.py::test_case[{}-seen.RepeatedAtOnce]"
    assert group_of(ptf.format("bmv2")) != group_of(ptf.format("embedded-udp"))
    assert group_of(ptf.format("bmv2")) == group_of("tests/ptf/test_ptf.py::test_case[bmv2-a.B]")
    assert group_of("tests/ptf/test_ptf.py::test_mistake_is_noticed[a]") not in {
        group_of(ptf.format(name)) for name in ("bmv2", "embedded-udp", "embedded-veth")
    }
    recovery = "tests/ptf/test_ptf.py::test_case[bmv2-recovery.RecallTellsWhatWasSeen]"
    assert group_of(ptf.format("bmv2")) == group_of(recovery)
    alone = "tests/host/test_congestion.py::test_something[1]"
    assert group_of(alone) == alone
    assert all(Path(file).is_file() for file in SHARED)


def test_what_runs_whole_programs_is_there():
    assert all((Path("tests") / place).exists() for place in WHOLE)
    assert is_whole("tests/recovery/test_faults.py")
    assert is_whole("tests/test_docs.py")
    assert not is_whole("tests/host/direct/test_sums.py")
