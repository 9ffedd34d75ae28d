"""What holds for all tests: levels, leftovers, speed, threads, Ctrl-C as a terminal gives it."""

import os
import signal

import pytest
from hypothesis import settings

from tests.support.speed import seconds_here

pytest_plugins = ["tests.support.levels", "tests.support.leftovers"]

# A busy neighbour is no mistake: an example may take as long as its test.
settings.register_profile("patient", deadline=None)
# Before a commit a quarter of the examples; the others come with `make test`.
settings.register_profile("quick", deadline=None, max_examples=25)


def pytest_configure(config):
    settings.load_profile("quick" if config.getoption("--level") == "check" else "patient")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """A whole test may take longer on a slow machine, too: see `timeout` in pyproject.toml."""
    if item.config.getoption("timeout") is None and not item.get_closest_marker("timeout"):
        item.add_marker(pytest.mark.timeout(seconds_here(float(item.config.getini("timeout")))))
    return (yield)


# Before anything imports PyTorch: see switchgnn/jobs/train.py.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# A shell without job control starts background commands with SIGINT ignored, and so would be
# every program that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# The same for `nohup` and SIGHUP.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
