# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which tests `make check`, `make test` and `make test-all` run, and what is said of the rest."""

import hashlib
import os
from collections import Counter

import pytest

from switchgnn.planner.partition.ptscotch import ptscotch_missing
from switchgnn.topologies.mininet_fabric import mininet_missing
from switchgnn.topologies.targets import BMV2_PROGRAM, bmv2_installed

LEVELS = ("check", "test", "all")
# What takes long to begin, as a switch with a plan or one run of PTF: with several processes all
# tests of one such fixture run in the same process, and the longest begin first.
SHARED = ("runner", "shared_bed", "made", "ground", "plain", "target")
LONGEST = ("ptf", "promela", "test_docs.py", "end_to_end", "recovery")
# Folders whose tests run whole programs; in the others only those with the mark do.
WHOLE = ("end_to_end", "examples", "fuzz", "promela", "ptf", "recovery", "simulator", "strawman")
WHOLE_FILES = ("test_docs.py",)


def pytest_addoption(parser):
    group = parser.getgroup("switchgnn")
    group.addoption(
        "--level",
        choices=LEVELS,
        default="test",
        help="check: no whole programs; test: each promise once on each switch and fabric; "
        "all: every variation",
    )
    group.addoption(
        "--share",
        metavar="N:SEED",
        help="of the variations that only --level all has one in N, chosen by the seed, "
        "and nothing else",
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "full: a variation that only make test-all runs")
    config.addinivalue_line("markers", "whole: runs whole programs; make check leaves it out")
    config.pluginmanager.register(Kept(config), "switchgnn-levels")
    # For those tests that search longer in `make test-all`.
    os.environ["SWITCHGNN_LEVEL"] = config.getoption("--level")


class Kept:
    """Keeps the tests of the level, and counts the others."""

    def __init__(self, config):
        self.config = config
        self.left_out = Counter()

    # Before xdist reads the groups.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config, items):
        for item in items:
            if is_whole(item):
                item.add_marker("whole")
        # Whoever names a test wants it.
        if any("::" in word for word in config.args):
            return
        kept, left = [], []
        for item in items:
            (kept if self._wanted(item) else left).append(item)
        kept.sort(key=lambda item: start_of(item.nodeid))
        for item in kept:
            group_together(item)
        self.left_out.update(folder_of(item.nodeid) for item in left)
        config.hook.pytest_deselected(items=left)
        items[:] = kept

    def _wanted(self, item):
        full = item.get_closest_marker("full") is not None
        if share := self.config.getoption("--share"):
            return full and in_share(item.nodeid, share)
        level = self.config.getoption("--level")
        if level == "check":
            return not full and item.get_closest_marker("whole") is None
        return level == "all" or not full

    def pytest_sessionfinish(self, session):
        # With several processes each worker tells the one that writes the summary.
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left_out"] = dict(self.left_out)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.left_out = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))

    def pytest_terminal_summary(self, terminalreporter):
        passed = [report.nodeid for report in terminalreporter.stats.get("passed", [])]
        terminalreporter.section("what ran")
        for line in summary(passed):
            terminalreporter.write_line(line)
        total = sum(self.left_out.values())
        if total:
            most = ", ".join(f"{folder} {count}" for folder, count in self.left_out.most_common())
            level = self.config.getoption("--level")
            rest = (
                "not in this share"
                if self.config.getoption("--share")
                else (
                    "only in make test-all" if level == "test" else "only in make test or test-all"
                )
            )
            terminalreporter.write_line(f"{rest}: {total} tests ({most})")


def is_whole(item):
    """Whether the folder or the file of a test says that it runs whole programs."""
    parts = item.nodeid.partition("::")[0].split("/")
    return parts[-1] in WHOLE_FILES or (len(parts) > 1 and parts[1] in WHOLE)


def start_of(nodeid):
    """When a test begins: its place among the folders that take longest."""
    folder = nodeid.partition("::")[0].split("/")[1]
    return LONGEST.index(folder) if folder in LONGEST else len(LONGEST)


def group_together(item):
    """Keep the tests of a shared fixture in one process, unless the test says how."""
    if item.get_closest_marker("xdist_group") is not None:
        return
    for name in SHARED:
        if name in item.fixturenames:
            module = item.nodeid.partition("::")[0]
            parameters = item.callspec.params if hasattr(item, "callspec") else {}
            chosen = [f"{parameters[key]}" for key in (name, "send") if key in parameters]
            item.add_marker(pytest.mark.xdist_group("/".join([module, name, *chosen])))
            return


def in_share(nodeid, share):
    """Whether a test is in `1 of N` under a seed."""
    number, _, seed = share.partition(":")
    digest = hashlib.sha256(f"{seed}/{nodeid}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % int(number) == 0


def folder_of(nodeid):
    """The folder below tests/ that a test is in."""
    parts = nodeid.partition("::")[0].split("/")
    return parts[1].removesuffix(".py") if len(parts) > 1 else parts[0]


def summary(passed):
    """What ran on which switch, fabric and engine, and why not."""
    no_mininet, no_ptscotch = mininet_missing(), ptscotch_missing()
    no_bmv2 = None if bmv2_installed() else f"{BMV2_PROGRAM} is not on the PATH"
    yield line_of("switch embedded", passed, "embedded", None)
    yield line_of("switch bmv2", passed, "bmv2", no_bmv2)
    yield line_of("fabric loopback", passed, "loopback", None)
    yield line_of("fabric mininet", passed, "mininet", no_mininet)
    yield f"partition ptscotch: {f'absent: {no_ptscotch}' if no_ptscotch else 'here'}"


def line_of(what, passed, word, absent):
    """One line: how many tests name it, or why there is none."""
    count = sum(word in nodeid for nodeid in passed)
    return f"{what}: {f'absent: {absent}' if absent else f'{count} tests name it and passed'}"
