"""Which tests `make check`, `make test` and `make test-all` run, and what is said of the rest."""

import hashlib
import importlib.util
import os
import shutil
from collections import Counter

import pytest
from xdist.scheduler import LoadScopeScheduling

from switchgnn.base.native import find_compiler
from switchgnn.topologies.mininet_fabric import mininet_missing
from switchgnn.topologies.targets import BMV2_PROGRAM, bmv2_installed
from tests.support.gpu import cuda_missing

LEVELS = ("check", "test", "all")
# Files whose tests share what takes long to begin (a switch with a plan, a run of PTF, a site), and
# the words in their names that say which. Other files of whole programs are divided among the
# processes of tests; all others run in one process each. The longest folders begin first.
SHARED = (
    *("tests/ptf/test_ptf.py", "tests/recovery/test_allreduce.py", "tests/recovery/test_faults.py"),
    *("tests/strawman/test_sums.py", "tests/docs/test_site.py", "tests/end_to_end/test_mininet.py"),
    *("tests/end_to_end/test_strategies.py", "tests/fuzz/test_star.py"),
    *("tests/controller/test_targets.py", "tests/test_docs.py"),
)
SHARED_BY = ("star", "leaf", "embedded", "udp", "veth", "python", "bmv2", "multicast", "cover")
LONGEST = (
    *("examples", "docs", "ptf", "promela", "test_docs.py", "experiments"),
    *("end_to_end", "recovery"),
)
# Where tests run whole programs, or wait for real time; elsewhere only those with the mark do.
WHOLE = (
    *("end_to_end", "examples", "fuzz", "planted", "promela", "ptf", "recovery", "simulator"),
    *("strawman", "test_docs.py", "controller/test_targets.py", "controller/test_watch.py"),
    *("experiments/test_command.py", "experiments/test_outputs.py", "host/direct/test_faults.py"),
    *("host/direct/test_streams.py", "host/innetwork/test_exchange.py"),
    *("planner/graphs/test_shaped.py", "topologies/test_forkserver.py", "topologies/test_relay.py"),
    "training/test_oracle.py",
)


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
    # Read by tests that search longer in `make test-all`.
    os.environ["SWITCHGNN_LEVEL"] = config.getoption("--level")


def pytest_ignore_collect(collection_path, config):
    """Skip reading the folders without tests of `make check`."""
    parts = collection_path.relative_to(config.rootpath).parts
    if config.option.file_or_dir or config.getoption("--level") != "check":
        return None
    return True if is_whole("/".join(parts)) else None


class Kept:
    """Keeps the tests of the level, and counts the others."""

    def __init__(self, config):
        self.config = config
        self.left_out = Counter()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        for item in items:
            if is_whole(item.nodeid.partition("::")[0]):
                item.add_marker("whole")
        # Tests named on the command line always run.
        if any("::" in word for word in config.args):
            return
        kept, left = [], []
        for item in items:
            (kept if self._wanted(item) else left).append(item)
        kept.sort(key=lambda item: start_of(item.nodeid))
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
        # Workers of xdist send their counts to the process that writes the summary.
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left_out"] = dict(self.left_out)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config, log):
        # In our order, and not the largest groups first.
        config.option.loadscopereorder = False
        return Grouped(config, log)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.left_out = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))

    def pytest_terminal_summary(self, terminalreporter):
        passed = [report.nodeid for report in terminalreporter.stats.get("passed", [])]
        terminalreporter.section("what ran")
        for line in (*summary(passed), *left_out(self.config, self.left_out)):
            terminalreporter.write_line(line)


class Grouped(LoadScopeScheduling):
    """Gives every process a group of tests at a time."""

    def _split_scope(self, nodeid):
        return group_of(nodeid)


def is_whole(path):
    name = path.removeprefix("tests/")
    return any(name == whole or name.startswith(f"{whole}/") for whole in WHOLE)


def start_of(nodeid):
    folder = nodeid.partition("::")[0].split("/")[1]
    return LONGEST.index(folder) if folder in LONGEST else len(LONGEST)


def group_of(nodeid):
    """Group tests that share a switch or a folder, which must run in one process."""
    file, _, test = nodeid.partition("::")
    if file not in SHARED:
        return nodeid if is_whole(file) else file
    if "mistake" in test:
        return f"{file}[mistakes]"
    parameters = test.partition("[")[2].rstrip("]").split("-")
    return f"{file}[{', '.join(word for word in SHARED_BY if word in parameters)}]"


def in_share(nodeid, share):
    number, _, seed = share.partition(":")
    digest = hashlib.sha256(f"{seed}/{nodeid}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % int(number) == 0


def folder_of(nodeid):
    parts = nodeid.partition("::")[0].split("/")
    return parts[1].removesuffix(".py") if len(parts) > 1 else parts[0]


def summary(passed):
    """Count what ran on each switch, fabric and engine, or why not."""
    no_bmv2 = None if bmv2_installed() else f"{BMV2_PROGRAM} is not on the PATH"
    yield line_of("switch embedded", passed, "embedded", None)
    yield line_of("back end python", passed, "python", None)
    yield line_of("switch bmv2", passed, "bmv2", no_bmv2)
    yield line_of("fabric loopback", passed, "loopback", None)
    yield line_of("fabric mininet", passed, "mininet", mininet_missing())
    yield line_of("dissector tshark", passed, "wireshark", tshark_missing())
    yield line_of("site mkdocs", passed, "docs/test_site", site_missing())
    yield line_of("device cuda", passed, "[cuda", cuda_missing())
    yield line_of("oracle ns3", passed, "_ns3_", ns3_missing())
    yield line_of("browser chromium", passed, "browser", browser_missing())


def tshark_missing():
    return None if shutil.which("tshark") else "tshark is not on the PATH (apt-get install tshark)"


def site_missing():
    needed = ("mkdocs", "material", "mkdocstrings_handlers")
    if all(importlib.util.find_spec(name) for name in needed):
        return None
    return "MkDocs is not installed (make docs installs it)"


def simulator_missing():
    """Why nothing can be simulated; None: it can."""
    return None if find_compiler() else "no C++ compiler is on the PATH (apt-get install g++)"


def ns3_missing():
    return None if importlib.util.find_spec("ns3") else "ns3 is not installed (pip install ns3)"


def browser_missing():
    if importlib.util.find_spec("selenium") is None:
        return "selenium is not installed"
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    remedy = "(apt-get install chromium chromium-driver)"
    return f"{' and '.join(missing)} not on the PATH {remedy}" if missing else None


def left_out(config, counts):
    """Return one line on the tests of other levels, if there are any."""
    most = ", ".join(f"{folder} {count}" for folder, count in counts.most_common())
    level = config.getoption("--level")
    if config.getoption("--share"):
        where = "not in this share"
    else:
        where = "only in make test-all" if level == "test" else "only in make test or test-all"
    if counts:
        yield f"{where}: {counts.total()} tests ({most})"
    if level == "check" and not config.option.file_or_dir:
        yield f"{where}: all tests in {', '.join(WHOLE)}"


def line_of(what, passed, word, absent):
    count = sum(word in nodeid for nodeid in passed)
    return f"{what}: {f'absent: {absent}' if absent else f'{count} tests name it and passed'}"
