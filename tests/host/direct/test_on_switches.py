# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Every transport through a real switch, which forwards frames by their MAC address."""

from contextlib import ExitStack

import numpy as np
import pytest

from switchgnn.host.direct import (
    PROTOCOL,
    DirectTransport,
    Framing,
    copy_schedules,
    partial_schedules,
    rows_per_pair,
)
from switchgnn.host.direct.frames import Envelopes
from switchgnn.host.direct.framing import LARGEST_MTU
from switchgnn.host.errors import LinkError
from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.innetwork.transport import InNetworkTransport
from switchgnn.host.wire.faults import Faults, FaultyLink
from switchgnn.host.wire.header import HEADER_AT, Header, Kind
from switchgnn.host.wire.link import check_packets_fit
from switchgnn.planner.direction import Direction
from switchgnn.topologies import Target
from tests.host.direct.crew import exchange, parts_of, stations, wrong
from tests.host.direct.framings import sizes_of_frames
from tests.support.fabrics import PATIENT, bed
from tests.support.markers import TARGETS
from tests.support.speed import pace_here

WORKERS = 4
METHODS = {"host": copy_schedules, "host-partial": partial_schedules}


@pytest.fixture(scope="module", params=TARGETS)
def made(request, tmp_path_factory):
    with bed(
        request.param,
        WORKERS,
        tmp_path_factory.mktemp("bed"),
        graph="digits",
        directions="both",
        mtu=LARGEST_MTU,
    ) as each:
        each.install()
        yield each


@pytest.fixture
def links(made):
    with ExitStack() as stack:
        yield [stack.enter_context(made.link(w, PROTOCOL)) for w in range(WORKERS)]


def features_for(made, width):
    shape = (made.graph.vertices, width)
    return np.random.default_rng(width).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("mtu", [None, 1500, LARGEST_MTU], ids=["fragment", "1500", "largest"])
@pytest.mark.parametrize("method", METHODS)
def test_sums_and_frames(made, links, method, mtu):
    assignment = made.plan.assignment
    schedules = METHODS[method](made.graph, assignment, WORKERS)
    transports = [
        DirectTransport(
            each, link, stations(WORKERS), pace=pace_here(PATIENT), framing=Framing(mtu)
        )
        for each, link in zip(schedules, links, strict=True)
    ]
    features = features_for(made, 40)
    calls = [(features, way, False) for way in (Direction.FORWARD, Direction.BACKWARD)]
    sums = exchange(transports, parts_of(assignment, WORKERS), calls)
    for got, (_, way, _) in zip(sums, calls, strict=True):
        assert wrong(made.graph, assignment, features, got, way) == 0
    rows = rows_per_pair(schedules).ravel().tolist()
    sizes = [size for each in rows for size in 2 * sizes_of_frames(each, 40, mtu)]
    predicted = len(sizes)
    if method == "host" and mtu is None:
        forward = made.plan.manifest.direction(Direction.FORWARD)
        assert predicted == 2 * 2 * sum(forward.prediction.host_packets_up)
    tallies = [each.tally for each in transports]
    # The window of 16 fits the rings of BMv2: nothing is lost.
    assert sum(each.data_resent for each in tallies) == 0
    assert sum(each.data_sent for each in tallies) == predicted
    sent = sum(sizes) + 60 * sum(each.control_sent for each in tallies)
    assert sum(each.traffic.bytes_up for each in transports) == sent


def test_an_interface_with_a_smaller_mtu_is_refused(made, links):
    """Before anything is sent, with what mends it; over UDP all packets fit."""
    name = links[0].name if made.target is Target.BMV2 else "127.0.0.1:1:127.0.0.1:2"
    kind = "eth" if made.target is Target.BMV2 else "udp"
    check_packets_fit(f"{kind}:{name}", LARGEST_MTU)
    if kind == "eth":
        with pytest.raises(LinkError, match=f"{name} has an MTU of {LARGEST_MTU} .* --mtu"):
            check_packets_fit(f"eth:{name}", LARGEST_MTU + 1)
        with pytest.raises(LinkError, match="There is no interface nobody"):
            check_packets_fit("eth:nobody", 1500)


def test_sums_under_faults(made, links):
    assignment = made.plan.assignment
    faults = Faults.parse("loss=0.02,duplicate=0.01,reorder=0.02,corrupt=0.005,seed=3")
    transports = [
        DirectTransport(
            each,
            FaultyLink(link, faults, each.worker),
            stations(WORKERS),
            pace=pace_here(PATIENT),
            framing=Framing(200),
        )
        for each, link in zip(
            partial_schedules(made.graph, assignment, WORKERS), links, strict=True
        )
    ]
    features = features_for(made, 33)
    (got,) = exchange(
        transports, parts_of(assignment, WORKERS), [(features, Direction.FORWARD, False)]
    )
    assert wrong(made.graph, assignment, features, got) == 0
    assert sum(each.tally.data_resent for each in transports) > 0


def test_the_sums_of_the_switch_behind_the_same_interface(made):
    # Two whole fragments, so that what is sent again has the same size, whichever it is.
    features = features_for(made, 64)
    session = made.install().session
    with ExitStack() as stack:
        transports, tallies = [], []
        for part in made.plan.workers:
            link = stack.enter_context(made.link(part.worker))
            own = InNetworkExchange(
                made.plan.manifest,
                part,
                link,
                made.addresses(part.worker),
                session=session,
                pace=pace_here(PATIENT),
            )
            transports.append(InNetworkTransport(own, link))
            tallies.append(own.tally)
        calls = [(features, way, True) for way in (Direction.FORWARD, Direction.BACKWARD)]
        parts = parts_of(made.plan.assignment, WORKERS)
        # Fixed point is off by at most n / (2f) with f = (2^31 - n) / (n m).
        fan_in = made.plan.manifest.max_fan_in
        slack = fan_in**2 * np.abs(features).max() / 2**31
        for got in exchange(transports, parts, calls):
            assert wrong(made.graph, made.plan.assignment, features, got, slack=slack) == 0
        for transport, tally in zip(transports, tallies, strict=True):
            expected = [transport.expected_traffic(64, way) for _, way, _ in calls]
            asked = tally.recalls + tally.fetches + tally.notices
            again = tally.features_resent + tally.probes + tally.features_served
            assert transport.traffic.bytes_up == (
                sum(one.bytes_up for one in expected)
                + 88 * tally.barriers_repeated
                + 60 * asked
                + 188 * again
            )
            assert transport.traffic.bytes_down >= sum(one.bytes_down for one in expected)


@pytest.mark.parametrize("kind", [Kind.FEATURE, Kind.ACK, Kind.RECALL, Kind.DONE])
def test_frames_arrive_unchanged(made, links, kind):
    """Whatever the SwitchGNN header of such a frame says, the switch leaves it alone."""
    header = Header(kind=kind, is_ack=True, src_id=2**32 - 1, dst_id=7, fragment=9, round=3)
    envelopes = Envelopes(0, stations(WORKERS))
    frames = [envelopes.control(1, header)]
    if kind is Kind.FEATURE:
        body = np.arange(128, dtype=np.uint8).tobytes()
        frames = [envelopes.data(1, len(body)) + header.pack(body)]
        frames.append(frames[0][:HEADER_AT] + frames[0][:-1][HEADER_AT:] + b"\xff")
    for frame in frames:
        links[0].send(frame)
        assert frame in arrived(links[1])


def arrived(link):
    """The frames that arrive; some of an earlier test may be among them."""
    frame = link.receive(5.0)
    while frame is not None:
        yield bytes(frame)
        frame = link.receive(1.0)
