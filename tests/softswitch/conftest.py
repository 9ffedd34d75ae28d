"""Fixtures; tests of programs run on both back ends."""

import pytest

from switchgnn.base.native import find_compiler
from switchgnn.softswitch import Backend, SoftSwitch
from tests.softswitch.harness import RIGS, Controller

CPU = 510
# Modules whose tests run on both back ends.
_BOTH = {*("test_clients", "test_headers", "test_p4runtime", "test_ports", "test_programs")}


def pytest_generate_tests(metafunc):
    if metafunc.module.__name__.rpartition(".")[2] in _BOTH:
        metafunc.parametrize("backend", list(Backend)[:2], indirect=True, ids=lambda b: b.value)


@pytest.fixture(autouse=True)
def backend(request, monkeypatch):
    """The back end of every switch of a test; AUTO if the test has no parameter."""
    chosen = getattr(request, "param", None)
    if chosen is None:
        return Backend.AUTO
    if chosen is Backend.NATIVE and find_compiler() is None:
        pytest.skip("needs a C++ compiler")
    monkeypatch.setitem(SoftSwitch.__init__.__kwdefaults__, "backend", chosen)
    if hasattr(request.module, "Rig"):
        monkeypatch.setattr(request.module, "Rig", RIGS[chosen.value])
    return chosen


@pytest.fixture
def switch(backend):
    with SoftSwitch(cpu_port=CPU) as running:
        yield running


@pytest.fixture
def controller(switch):
    """The primary controller of a switch without a program."""
    with Controller(switch.grpc_address, "tables") as primary:
        assert primary.arbitrate() == 0
        yield primary


@pytest.fixture
def tables(controller):
    """The primary controller of a switch that runs the tables program."""
    controller.set_config(cookie=42)
    return controller
