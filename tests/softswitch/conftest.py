# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of programs on both back ends."""

import pytest

from switchgnn.base.native import find_compiler
from switchgnn.softswitch import Backend, SoftSwitch
from tests.softswitch.harness import RIGS

# Those that are about the program's packets, whichever code it is.
_BOTH = {
    *("test_clients", "test_fates", "test_headers", "test_p4runtime", "test_ports", "test_tables"),
}


def pytest_generate_tests(metafunc):
    if metafunc.module.__name__.rpartition(".")[2] in _BOTH:
        metafunc.parametrize("backend", list(Backend)[:2], indirect=True, ids=lambda b: b.value)


@pytest.fixture(autouse=True)
def backend(request, monkeypatch):
    """The back end of every switch of a test; that of the command line where it is not told."""
    chosen = getattr(request, "param", None)
    if chosen is None:
        return Backend.AUTO
    if chosen is Backend.NATIVE and find_compiler() is None:
        pytest.skip("needs a C++ compiler")
    monkeypatch.setitem(SoftSwitch.__init__.__kwdefaults__, "backend", chosen)
    if hasattr(request.module, "Rig"):
        monkeypatch.setattr(request.module, "Rig", RIGS[chosen.value])
    return chosen
