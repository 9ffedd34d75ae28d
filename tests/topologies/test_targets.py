"""Which switch and fabric are chosen, and how switches are started, several of one kind as well."""

import pytest

from switchgnn.topologies import Backend, Bmv2Log, FabricError, Target, choice, choose
from switchgnn.topologies.targets import switch_command

NO_MININET = "Mininet is not installed (apt-get install mininet)"


@pytest.fixture(params=[(True, True), (True, False), (False, True), (False, False)], ids=str)
def machine(request, monkeypatch):
    mininet, bmv2 = request.param
    monkeypatch.setattr(choice, "mininet_missing", lambda: None if mininet else NO_MININET)
    monkeypatch.setattr(choice, "bmv2_installed", lambda: bmv2)
    return request.param


def test_auto_takes_the_best_network_and_the_faster_switch(machine):
    mininet, _ = machine
    made = choose("auto", "auto")
    assert made.fabric.value == ("mininet" if mininet else "loopback")
    assert made.target is Target.EMBEDDED


def test_the_reference_is_bmv2_where_it_can_run(machine):
    mininet, bmv2 = machine
    assert choose("reference", "auto").target.value == ("bmv2" if mininet and bmv2 else "embedded")
    assert choose("reference", "loopback").target is Target.EMBEDDED


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
    assert choose("reference", "auto", backend).target is Target.EMBEDDED
    with pytest.raises(FabricError, match=f"no --backend {backend.value}"):
        choose("bmv2", "mininet", backend)


@pytest.mark.parametrize(("level", "console"), [(None, False), (Bmv2Log.DEBUG, True)])
def test_bmv2_logs_if_asked(level, console):
    log = {} if level is None else {"bmv2_log": level}
    words = switch_command(Target.BMV2, ports={}, grpc_address="unix:/a", **log)
    own = words[: words.index("--")]
    assert own[own.index("--log-level") + 1] == ("off" if level is None else level.value)
    assert ("--log-console" in own) == console


def test_two_run_side_by_side():
    words = [switch_command(Target.BMV2, ports={}, grpc_address="unix:/a") for _ in range(3)]
    assert len({each[each.index("--thrift-port") + 1] for each in words}) > 1
