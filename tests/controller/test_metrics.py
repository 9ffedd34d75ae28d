"""What switches have counted, as Prometheus is told."""

import pytest

from switchgnn.controller import Outcome, P4RuntimeClient
from switchgnn.controller.controls.banks import PASS_CELLS
from switchgnn.controller.controls.outcome import OUTCOME_CELLS
from switchgnn.controller.metrics import SwitchMetrics
from tests.controller.plans import install, make_plan
from tests.host.test_metrics import check_names
from tests.support.hand_clock import HandClock
from tests.support.speed import seconds_here

PLAN = make_plan()


def reader(fake):
    return P4RuntimeClient(fake.address, primary=False, deadline=seconds_here(1))


@pytest.fixture
def served(fake, client, network, program):
    install(PLAN, [client], network, program=program)
    return fake


@pytest.fixture
def clock():
    return HandClock(0.0)


@pytest.fixture
def switches(served, clock):
    made = SwitchMetrics([reader(served)], 1.0, clock)
    yield made
    made.close()


def values(families):
    """Every number, by its name and the values of its labels but the switch."""
    samples = [sample for family in families for sample in family.samples]
    return {(each.name, *[*each.labels.values()][1:]): each.value for each in samples}


def test_what_a_switch_has_counted(served, switches):
    served.contents.counters = {
        ("outcome", OUTCOME_CELLS + Outcome.AGGREGATED): 5,
        ("outcome", Outcome.STALE): 2,
        ("passes", PASS_CELLS + 1): 3,
        ("passes", PASS_CELLS + 4): 2,
        ("bank2.events", 1): 7,
        ("unrouted", 0): 8,
        ("marked", 0): 9,
        ("releases", 1): 4,
        **{("port_queue", port): packets for port, packets in ((0, 10), (3, 20), (64, 30))},
    }
    found = values(switches.collect())
    assert found["switchgnn_switch_up",] == 1
    fates = ("aggregated", "stale", "duplicate")
    assert [found["switchgnn_frames_total", fate] for fate in fates] == [5, 2, 0]
    assert found["switchgnn_passes_total",] == 5
    assert found["switchgnn_contributions_total",] == 3 + 8
    assert found["switchgnn_slot_events_total", "2", "stale"] == 7
    assert found["switchgnn_unrouted_sums_total",] == 8
    assert found["switchgnn_marked_packets_total",] == 9
    assert found["switchgnn_releases_total", "default", "1"] == 4
    assert found["switchgnn_session", "default"] == found["switchgnn_newest_session",] == 1
    assert found["switchgnn_plan_info", "default", f"{PLAN.manifest.number:08x}"] == 1
    assert found["switchgnn_multicast_groups",] == 1 + 3 * 8
    assert found["switchgnn_job_frames_total", "default", "aggregated"] == 5
    assert ("switchgnn_job_frames_total", "default", "stale") not in found
    assert found["switchgnn_job_passes_total", "default"] == 5
    assert found["switchgnn_ecn_threshold_packets", "default"] == 32
    assert found["switchgnn_table_entries", "source"] == len(served_table(served, "source"))
    queue = "switchgnn_queue_length_packets"
    assert {name[1]: value for name, value in found.items() if name[0] == f"{queue}_bucket"} == {
        **{"0.0": 10, "1.0": 10, "2.0": 10, "4.0": 30, "8.0": 30, "16.0": 30, "32.0": 30},
        "+Inf": 60,
    }
    assert found[f"{queue}_sum",] == 3 * 20 + 64 * 30


def served_table(fake, name):
    tables = fake.contents.config.p4info.tables
    [ident] = [each.preamble.id for each in tables if each.preamble.alias == name]
    return [key for key in fake.contents.entries if key[0] == ident]


def test_names_follow_the_conventions(served, switches):
    check_names(list(switches.collect()), "switchgnn", ("switch", served.address))


def test_a_switch_that_is_gone_and_back(served, switches, clock, client, network, program):
    assert values(switches.collect())["switchgnn_switch_up",] == 1
    served.stop()
    clock.seconds += 2
    assert values(switches.collect()) == {("switchgnn_switch_up",): 0}
    # It comes back without a program: it is there, and has nothing to tell.
    served.restart()
    clock.seconds += 2
    assert values(switches.collect()) == {("switchgnn_switch_up",): 1}
    client.close()
    client.open()
    install(PLAN, [client], network, program=program)
    clock.seconds += 2
    found = values(switches.collect())
    assert found["switchgnn_switch_up",] == 1
    assert found["switchgnn_table_entries", "source"] == len(served_table(served, "source"))


def test_who_asks_often_costs_the_switch_nothing(served, switches, clock):
    first = values(switches.collect())
    served.contents.counters = {("outcome", Outcome.AGGREGATED): 5}
    clock.seconds += 0.9
    assert values(switches.collect()) == first
    clock.seconds += 0.1
    assert values(switches.collect())["switchgnn_frames_total", "aggregated"] == 5


def test_tables_are_read_once_for_an_install(served, switches, clock, client, network, program):
    asked = []
    real = P4RuntimeClient.read_responses

    def counting(self, entities):
        entities = list(entities)
        asked.extend(each.table_entry.table_id for each in entities if each.HasField("table_entry"))
        return real(self, entities)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(P4RuntimeClient, "read_responses", counting)
        switches.values()
        often = len(asked)
        asked.clear()
        clock.seconds += 2
        switches.values()
        # The newest session, and the tables that say which jobs there are.
        assert len(asked) == 5 < often
        install(PLAN, [client], network, program=program, new_session=True)
        asked.clear()
        clock.seconds += 2
        switches.values()
        assert len(asked) == often


def test_one_of_several_is_gone(served, other_fake, clock):
    gone = P4RuntimeClient(other_fake.address, primary=False, deadline=0.2)
    other_fake.stop()
    made = SwitchMetrics([reader(served), gone], 1.0, clock)
    try:
        assert [each["switch_up"] for each in made.values()] == [1, 0]
    finally:
        made.close()
