"""The figure beside other systems, where those are missing."""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def bare_python(tmp_path):
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("present", "reason"), [(True, "there is no sar"), (False, "No such file")]
)
def test_figure_is_left_out_where_both_peers_are_missing(bare_python, present, reason):
    named = bare_python if present else bare_python.with_name("none")
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--peers"],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"SAR_PYTHON": str(named), "BNS_GCN": str(named.parent)},
    )
    (line,) = (each for each in done.stdout.splitlines() if each.startswith("Left out: peers"))
    assert all(each in line for each in ("SAR_PYTHON", "BNS_GCN names no checkout", reason))
