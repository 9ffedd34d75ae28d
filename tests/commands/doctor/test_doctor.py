# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn doctor`: what it looks at, and what it says that mends."""

import importlib.metadata
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from switchgnn.base.machine import find_installation
from switchgnn.commands.application import app
from switchgnn.commands.doctor import examine

ROOT = Path(__file__).parents[3]


class Noted:
    """A package that pip has installed from somewhere."""

    def __init__(self, origin):
        self._origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return self._origin


@pytest.fixture
def install(monkeypatch):
    """Say what pip has noted of our package: JSON, None for nothing, or that there is none."""

    def installed(origin):
        def distribution(name):
            if name != "switchgnn":
                return real(name)
            if isinstance(origin, Exception):
                raise origin
            return Noted(
                origin if origin is None or isinstance(origin, str) else json.dumps(origin)
            )

        monkeypatch.setattr(importlib.metadata, "distribution", distribution)

    real = importlib.metadata.distribution
    return installed


@pytest.fixture
def nothing_here(monkeypatch):
    """A machine without any optional package."""

    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr("shutil.which", lambda _name: None)


WHEEL = {"url": "file:///tmp/switchgnn-0.1.0-py3-none-any.whl", "archive_info": {}}
FOLDER = {"url": "file:///src/switch%20gnn", "dir_info": {}}
EDITABLE = {"url": "file:///src/switch%20gnn", "dir_info": {"editable": True}}


@pytest.mark.parametrize(
    "origin", [WHEEL, FOLDER, "no JSON", '{"url": 3}', EDITABLE | {"url": "x"}]
)
def test_after_a_wheel_no_editable_install_is_advised(install, nothing_here, origin):
    install(origin)
    mends = {finding.name: finding.mend for finding in examine()}
    assert mends["torch"] == "pip install 'switchgnn[training]'"
    assert mends["numpy"] == "pip install switchgnn"
    assert not any("-e" in mend.split() for mend in mends.values())


def test_in_an_editable_install_its_folder_is_named(install, nothing_here):
    install(EDITABLE)
    mends = {finding.name: finding.mend for finding in examine()}
    assert mends["torch"] == "pip install -e '/src/switch gnn[training]'"
    assert mends["numpy"] == "pip install -e '/src/switch gnn'"


def test_who_stands_in_the_checkout_needs_no_path(install, monkeypatch, tmp_path):
    install(EDITABLE | {"url": tmp_path.as_uri()})
    monkeypatch.chdir(tmp_path)
    assert find_installation().mend("plots") == "pip install -e '.[plots]'"
    assert find_installation().mend() == "pip install -e ."


@pytest.mark.parametrize(
    "origin", [None, importlib.metadata.PackageNotFoundError("switchgnn")], ids=["old", "none"]
)
def test_where_nothing_is_noted_the_files_count(install, monkeypatch, tmp_path, origin):
    install(origin)
    assert find_installation().checkout == ROOT
    monkeypatch.setattr("switchgnn.__file__", str(tmp_path / "switchgnn" / "__init__.py"))
    assert find_installation().checkout is None


def test_every_extra_that_it_names_is_one(install, nothing_here):
    install(WHEEL)
    extras = set(importlib.metadata.metadata("switchgnn").get_all("Provides-Extra"))
    named = {
        finding.mend.partition("[")[2].partition("]")[0]
        for finding in examine()
        if "[" in finding.mend
    }
    assert named >= {"training", "plots", "hypergraph", "mininet", "ptscotch", "simulate"}
    assert named <= extras


def test_what_is_optional_is_looked_at():
    found = {finding.name: finding for finding in examine()}
    for name in ("torch", "torch_geometric", "matplotlib", "mtkahypar"):
        assert not found[name].required
        assert found[name].found == version_of(name)
        assert found[name].needed_for
    assert found["numba"].found == version_of("numba")


@pytest.mark.parametrize("reason", [None, "Mininet cannot build a network here (no)"])
def test_the_test_of_a_run_is_that_of_the_doctor(monkeypatch, reason):
    monkeypatch.setattr("switchgnn.commands.doctor.mininet_missing", lambda: reason)
    found = {finding.name: finding for finding in examine()}["fabric mininet"]
    assert not found.required
    assert (found.found is None) == (reason is not None)
    assert reason is None or found.mend == reason


def test_the_packages_for_mininet_are_those_of_the_readme(install, nothing_here):
    install(EDITABLE)
    mends = {finding.name: finding.mend for finding in examine()}
    (row,) = (line for line in ROOT.joinpath("README.md").open() if "| fabric `mininet` |" in line)
    assert mends["mnexec"] == mends["ethtool"] == "apt-get install mininet ethtool"
    assert "`apt-get install mininet ethtool`" in row
    assert mends["mininet"] == "pip install -e '/src/switch gnn[mininet]'"
    assert "the extra `[mininet]`" in row


def version_of(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def test_the_easy_way_to_the_programs_of_p4lang_is_named(nothing_here):
    mends = {finding.name: finding.mend for finding in examine()}
    assert "apt-get install p4lang-bmv2" in mends["simple_switch_grpc"]
    assert "apt-get install p4lang-p4c" in mends["p4c-bm2-ss"]
    assert "image p4lang/p4c" in mends["p4c-bm2-ss"]


def test_what_mends_stands_in_lines_that_can_be_copied(install, nothing_here):
    install(EDITABLE)
    done = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "80"})
    assert done.exit_code == 2, "numpy is required"
    lines = done.stdout.splitlines()
    assert "  torch: pip install -e '/src/switch gnn[training]'" in lines
    table = lines[: lines.index("To mend it:")]
    assert max(map(len, table)) <= 80
    assert "…" not in done.stdout
