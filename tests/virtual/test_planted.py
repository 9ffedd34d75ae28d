# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Mistakes in hosts, barrier and controller are found by as many scenarios as the docs say."""

import os
import subprocess
import sys

import pytest

from tests.planted.copies import ROOT, copy_of_the_tree
from tests.planted.test_planted import plant
from tests.support.speed import seconds_here
from tests.virtual.mistakes import MISTAKES

every_mistake = pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
FIND = """
import sys
from switchgnn.virtual.scenario.draw import Wish, draw_scenario
from switchgnn.virtual.soak import Soak

soak = Soak(Wish())
found = (soak.run(draw_scenario(seed, soak.wish)).violations for seed in range(int(sys.argv[1])))
print(next((each[0].name for each in found if each), "nothing"))
"""


@every_mistake
def test_it_still_applies(mistake, tmp_path):
    place = tmp_path / mistake.file
    place.parent.mkdir(parents=True)
    place.write_text((ROOT / mistake.file).read_text())
    compile(plant(mistake, tmp_path).read_text(), mistake.file, "exec")


def test_the_docs_list_them():
    lines = (ROOT / "docs" / "reliability.md").read_text().splitlines()
    listed = [f"| {mistake.what} | {mistake.within} |" for mistake in MISTAKES]
    assert [line for line in listed if line not in lines] == []


@pytest.mark.full
@pytest.mark.timeout(600)
@every_mistake
def test_it_is_found(mistake, tmp_path):
    folder = copy_of_the_tree(tmp_path / "copy")
    plant(mistake, folder)
    done = subprocess.run(
        [sys.executable, "-c", FIND, str(mistake.within)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=seconds_here(100),
        check=True,
    )
    assert done.stdout.strip() != "nothing"
