# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which switch and fabric are chosen, and which sentence comes first where they cannot be."""

import pytest

from switchgnn.topologies import Backend, FabricKind, Limits, Target, choice, choose, usual_limits
from switchgnn.topologies.errors import FabricError

NO_MININET = "Mininet is not installed (apt-get install mininet)"


@pytest.fixture(params=[(True, True), (True, False), (False, True), (False, False)], ids=str)
def machine(request, monkeypatch):
    """Whether the machine has Mininet, and whether it has BMv2."""
    mininet, bmv2 = request.param
    monkeypatch.setattr(choice, "mininet_missing", lambda: None if mininet else NO_MININET)
    monkeypatch.setattr(choice, "bmv2_installed", lambda: bmv2)
    return request.param


def test_auto_takes_the_best_that_is_there(machine):
    mininet, bmv2 = machine
    made = choose("auto", "auto")
    assert made.fabric.value == ("mininet" if mininet else "loopback")
    assert made.target.value == ("bmv2" if mininet and bmv2 else "embedded")


def test_bmv2_on_loopback_is_a_contradiction_on_every_machine(machine):
    with pytest.raises(FabricError, match="BMv2 attaches to network interfaces"):
        choose("bmv2", "loopback")


def test_what_is_missing_is_named(machine):
    mininet, bmv2 = machine
    if not mininet:
        with pytest.raises(FabricError, match="Mininet is not installed"):
            choose("auto", "mininet")
    if not bmv2:
        with pytest.raises(FabricError, match="simple_switch_grpc is not on the PATH"):
            choose("bmv2", "auto")
    elif not mininet:
        with pytest.raises(FabricError, match="needs --fabric mininet, but Mininet"):
            choose("bmv2", "auto")
    else:
        assert choose("bmv2", "auto").target.value == "bmv2"


@pytest.mark.parametrize("backend", [Backend.NATIVE, Backend.PYTHON])
def test_code_is_asked_of_the_embedded_switch(machine, backend):
    assert choose("auto", "auto", backend).target is Target.EMBEDDED
    with pytest.raises(FabricError, match=f"no --backend {backend.value}"):
        choose("bmv2", "mininet", backend)


def test_auto_is_for_every_switch(machine):
    assert choose("auto", "auto", Backend.AUTO) == choose("auto", "auto")


@pytest.mark.parametrize("fabric", FabricKind)
@pytest.mark.parametrize(
    ("target", "shaped", "limits"),
    [
        (Target.EMBEDDED, False, Limits(128, 128)),
        # The ring that BMv2 reads a port through, and its queues, are short.
        (Target.BMV2, False, Limits(16, 32)),
        (Target.BMV2, True, Limits(16, 32)),
    ],
)
def test_the_usual_limits(target, shaped, limits, fabric):
    assert usual_limits(target, fabric, shaped=shaped) == limits


def test_a_shaped_interface_takes_a_narrow_window():
    windows = {each: usual_limits(Target.EMBEDDED, each, shaped=True).window for each in FabricKind}
    assert windows == {FabricKind.MININET: 16, FabricKind.LOOPBACK: 64}
