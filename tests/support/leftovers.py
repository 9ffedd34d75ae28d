"""After every test: processes and files that it left end, and the test fails and names them.

What a module's fixture makes may stay until the fixture ends; what is made within :func:`lasting`,
or by a fixture of the session, as long as the tests. Only descendants of this process count, which
is their subreaper, and files in its own folder: others share the machine.
"""

import ctypes
import functools
import os
import shutil
import signal
import tempfile
import time
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.processes import Family, command_of
from tests.support.speed import Deadline

# Terminated processes may take a moment.
_MOMENT = 0.5
_INTERVAL = 0.01
_MOST_TRIES = 5
_TEMPORARY = "TMPDIR"
# Where pytest makes its own folders: https://docs.pytest.org/en/stable/how-to/tmp_path.html
_OF_PYTEST = "PYTEST_DEBUG_TEMPROOT"
_PR_SET_CHILD_SUBREAPER = 36
# PyTorch's cache, shared by all programs of a user.
_CACHES = ("torchinductor_",)


class Trace(NamedTuple):
    """A process: its number may be used again."""

    pid: int
    started: int


class Processes:
    """The descendants of this process."""

    def __init__(self):
        # Otherwise the kernel would reparent orphans to init.
        # https://man7.org/linux/man-pages/man2/PR_SET_CHILD_SUBREAPER.2const.html
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._family = Family(os.getpid())

    def now(self):
        return {Trace(each.pid, each.started) for each in self._family.members() if not each.ended}

    def reap(self, kept):
        """Reap zombies, except processes that may still be waited for."""
        for each in self._family.members():
            ours = each.ended and each.parent == os.getpid()
            if ours and Trace(each.pid, each.started) not in kept:
                with suppress(ChildProcessError):
                    os.waitpid(each.pid, os.WNOHANG)

    def describe(self, trace):
        return f"the process {trace.pid} ({command_of(trace.pid)})"

    def remove(self, trace):
        with suppress(ProcessLookupError):
            opened = os.pidfd_open(trace.pid)
            try:
                # The number may have been reused just before it was opened.
                if trace in self.now():
                    signal.pidfd_send_signal(opened, signal.SIGKILL)
            finally:
                os.close(opened)


class Files:
    def __init__(self, folder):
        self._folder = folder

    def now(self):
        names = os.listdir(self._folder)  # noqa: PTH208  after every test
        return {name for name in names if not name.startswith(_CACHES)}

    def describe(self, name):
        path = self._folder / name
        return f"the {'folder' if path.is_dir() else 'file'} {path}"

    def remove(self, name):
        path = self._folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


class Watch:
    """Everything that this process of tests has made, and what of it may stay."""

    def __init__(self, folder):
        self._processes = Processes()
        # A process that is killed may yet leave a file, so files come last.
        self._kinds = (self._processes, Files(folder))
        self._before = self._now()
        self._lasting = set()
        self._fixtures = set()  # that are up, and have made something

    def begin(self):
        """Ignore everything that exists before the first test."""
        self._before = self._now()

    @contextmanager
    def lasting(self):
        """Keep everything made in the block as long as the tests."""
        before = self._now()
        try:
            yield
        finally:
            self._lasting |= self._now() - before

    @contextmanager
    def made_by(self, fixture):
        """Look for leftovers again when this fixture has ended, if it makes something."""
        before = self._now()
        try:
            yield
        finally:
            if self._now() - before:
                self._fixtures.add(fixture)

    def ended(self, fixture):
        self._fixtures.discard(fixture)

    def take_away(self):
        """End and remove all leftovers, unless a fixture is up; return them in words."""
        words = {}
        # One that is being killed may have started another, or made a file.
        for _ in range(0 if self._fixtures else _MOST_TRIES):
            if not (found := self._found_after_a_moment()):
                break
            for kind, trace in sorted(found, key=self._order):
                words.setdefault((kind, trace), kind.describe(trace))
                try:
                    kind.remove(trace)
                except OSError as error:
                    words[kind, trace] += f" (which cannot be removed: {error})"
                    self._before.add((kind, trace))
        if not self._fixtures:
            # Leftovers that cannot be removed are not charged to the next test.
            self._before |= self._now() - self._lasting
            self._processes.reap({trace for _, trace in self._before | self._lasting})
        return list(words.values())

    def take_all_away(self):
        self._fixtures.clear()
        self._lasting.clear()
        return self.take_away()

    def _now(self):
        return {(kind, trace) for kind in self._kinds for trace in kind.now()}

    def _order(self, what):
        return self._kinds.index(what[0]), str(what[1])

    def _found_after_a_moment(self):
        deadline = Deadline(_MOMENT)
        while (found := self._now() - self._before - self._lasting) and not deadline.is_over():
            time.sleep(_INTERVAL)
        return found


@functools.cache
def _watches(_pid):
    return []


@contextmanager
def lasting():
    """Keep everything made in the block as long as the tests."""
    watches = _watches(os.getpid())
    with watches[0].lasting() if watches else nullcontext():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    config.pluginmanager.register(Plugin(config), "switchgnn-leftovers")
    # A SIGTERM, as of the time limit of a job, ends the tests like Ctrl-C: otherwise
    # they could not end what they have started.
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)


class Plugin:
    """Checks every test, and gives this process its own folder for temporary files."""

    def __init__(self, config):
        self._usual = tempfile.gettempdir()
        if hasattr(config, "workerinput"):
            # In that of the process that has started this one, which removes it in any case.
            self._folder = Path(self._usual) / config.workerinput["workerid"]
            self._folder.mkdir()
        else:
            # Short: sockets are made in folders that are made in it.
            self._folder = Path(tempfile.mkdtemp(prefix="sg-"))
            os.environ.setdefault(_OF_PYTEST, self._usual)
        self._use(str(self._folder))
        self.watch = Watch(self._folder)
        _watches(os.getpid()).append(self.watch)

    def pytest_collection_finish(self):
        self.watch.begin()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        if fixturedef.scope == "function":
            return (yield)
        lasts = fixturedef.scope == "session"
        with self.watch.lasting() if lasts else self.watch.made_by(fixturedef):
            return (yield)

    def pytest_fixture_post_finalizer(self, fixturedef):
        self.watch.ended(fixturedef)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item):
        try:
            result = yield
        except BaseException:
            # The test has failed already; report the leftovers as well.
            if left := self.watch.take_away():
                item.add_report_section("teardown", "left behind", sentence(item.nodeid, left))
            raise
        if left := self.watch.take_away():
            pytest.fail(sentence(item.nodeid, left), pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self):
        """Clean up after interrupted tests or a dead process of tests."""
        try:
            return (yield)
        finally:
            self.watch.take_all_away()

    def pytest_unconfigure(self):
        _watches(os.getpid()).clear()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._use(self._usual)

    @staticmethod
    def _use(folder):
        os.environ[_TEMPORARY] = folder
        tempfile.tempdir = None


def sentence(test, left):
    return f"{test} left behind, and it was ended or removed now: {'; '.join(left)}."
