"""Forged frames at a switch: of a stranger, and of a Byzantine worker beside its own traffic.

Nothing that they send may change a sum of others or hold up the run. Single refusals are tested in
tests/ptf; lies about a worker's own vertices, and leaves and spines, in virtual time.
"""

from contextlib import ExitStack

import pytest

from switchgnn.controller import P4RuntimeClient, read_counters
from switchgnn.host import Addresses, open_link
from switchgnn.host.links import WrappedLink
from switchgnn.host.wire.header import BODY_AT, Kind, unpack_header
from switchgnn.p4src import load_program
from switchgnn.topologies import Target, socket_address
from switchgnn.topologies.rpc_address import free_udp_addresses
from switchgnn.topologies.targets import switch_child, wait_until_serving
from tests.controller.plans import install
from tests.fuzz.frames import generator_for, is_ping, ping
from tests.fuzz.team import ALL, WORKERS, Team, star_world
from tests.simulation.network import VERSION_IHL_AT
from tests.support.commands import forkserver
from tests.support.speed import Deadline

STRANGER = WORKERS
BYZANTINE = WORKERS - 1
STRANGERS_FRAMES = 1_000_000 if ALL else 15_000
FRAMES = 200_000 if ALL else 8_000
VOLLEY = 16
# Outcomes of contributions and questions; the workers here do not reduce.
OF_ALL_REDUCES = ("REDUCE_ADDED", "REDUCE_REPEATED", "REDUCE_STALE", "REDUCE_ASKED")
# Kinds that a worker may send in no other worker's name.
IN_ITS_OWN_NAME = (Kind.DONE, Kind.NOTICE, Kind.REDUCE, Kind.REDUCED, Kind.REDUCING)
_SECONDS = 20.0


class Star:
    """A switch over UDP, and one port more than workers, which is in no job."""

    def __init__(self, stack, world, program, folder):
        self.world = world
        self.links = []
        self._program = program
        self._address = socket_address(folder)
        self._udp = free_udp_addresses(2 * (WORKERS + 1))
        self.switch = switch_child(
            Target.EMBEDDED,
            ports={end + 1: self._link(end, at_switch=True) for end in range(WORKERS + 1)},
            grpc_address=self._address,
            log=folder / "switch.log",
            forkserver=forkserver(),
        )
        stack.callback(self.switch.stop)
        self.switch.start()
        wait_until_serving(self.switch, self._address)
        self._client = stack.enter_context(P4RuntimeClient(self._address, primary=False))
        stack.callback(self._close_links)
        self.renew()

    def renew(self):
        """Begin a new session, with links on which nothing has arrived."""
        self._close_links()
        plan = self.world.plan
        self.session = install(
            *((plan.manifest, plan.switch), [self._address], self.world.network),
            program=self._program,
            new_session=True,
        ).session
        self.links = [open_link(self._link(end)) for end in range(WORKERS + 1)]
        self._before = self._outcomes()
        self._strange = self._frames_without_job()

    def addresses(self, end):
        network = self.world.network
        return Addresses(network.neighbours[end].station, network.switch)

    def mac(self, end):
        return self.world.network.neighbours[end].station.mac

    def arrived(self):
        """Frames that were handed to the links since the start."""
        return sum(link.traffic.frames_up for link in self.links)

    def team(self, *last):
        """All workers; the last ones have these links."""
        links = [*self.links[: WORKERS - len(last)], *last]
        return Team(self.world, links, self.addresses, session=self.session)

    def counted(self):
        """Frames by outcome, when all are counted or time is up."""
        deadline = Deadline(_SECONDS)
        while True:
            now = self._outcomes()
            delta = {name: now[name] - self._before[name] for name in now}
            if sum(delta.values()) == self.arrived() or deadline.is_over():
                return delta

    def from_strangers(self):
        return self._frames_without_job() - self._strange

    def _frames_without_job(self):
        return sum(read_counters(self._client).jobs[0].outcomes.values())

    def _outcomes(self):
        outcomes = read_counters(self._client).outcomes
        return {outcome.name: count for outcome, count in outcomes.items()}

    def _close_links(self):
        for link in self.links:
            link.close()

    def _link(self, end, *, at_switch=False):
        one, other = self._udp[end], self._udp[WORKERS + 1 + end]
        return f"udp:{other}:{one}" if at_switch else f"udp:{one}:{other}"


class FiringLink(WrappedLink):
    """Fires a volley when the worker sends and the last volley is through the switch."""

    def __init__(self, field, worker, shots, *, end):
        """``end`` is where the shots are sent: the worker's own link, or another one."""
        super().__init__(field.links[worker])
        self.round = 1  # the round that is exchanged
        self.fired = 0  # shots that were sent
        self._out = field.links[end]
        self._mac = field.mac(end)
        self._session = field.session
        self._from_strangers = field.from_strangers
        self._shots = shots
        self._waiting = False

    @property
    def empty(self):
        return self.fired >= len(self._shots) and not self._waiting

    def send(self, frame):
        self._link.send(frame)
        if self._waiting or self.empty:
            return
        for shot in self._shots[self.fired : self.fired + VOLLEY]:
            self._out.send(shot.aim(self._session, self.round))
            self.fired += 1
        if self._out is self._link:
            self._out.send(ping(self._mac, self.fired))
        self._waiting = True

    def receive(self, seconds):
        if self._out is not self._link:
            # No ping comes back to a port without a job.
            self._waiting = self._waiting and self._from_strangers() < self.fired
        frame = self._link.receive(seconds)
        while frame is not None and is_ping(frame):
            self._waiting = False
            frame = self._link.receive(0.0)
        return frame


def attack(field, firing):
    """Exchange until all shots are fired, or a worker has an error or a wrong sum."""
    team = field.team(firing)
    while not (firing.empty or team.errors or (team.round and team.wrong_rows())):
        firing.round = team.round + 1
        team.play()
    return team


def forged_shots(field, generator, worker, count):
    """Shots that a switch must not accept from this worker."""
    shots = []
    while len(shots) < count:
        shot = generator.shot()
        if not _may_send(field.world, worker, shot.aim(field.session, 1)):
            shots.append(shot)
    return shots


def _may_send(world, worker, frame):
    if len(frame) < BODY_AT:
        return False
    # The switch does not look at the version of IPv4.
    header = unpack_header(frame[:VERSION_IHL_AT] + b"\x45" + frame[VERSION_IHL_AT + 1 :])
    if header is None:
        return False
    if header.kind is Kind.FEATURE:
        return world.facts.owner.get(header.src_id) == worker
    if header.kind in (Kind.RECALL, Kind.FETCH):
        return world.facts.sums.get((header.block_id, header.dst_id), (None, 0))[0] == worker
    return header.kind in IN_ITS_OWN_NAME and header.src_id == worker


@pytest.fixture(scope="module")
def one_field(tmp_path_factory):
    with ExitStack() as stack:
        yield Star(stack, star_world(), load_program(), tmp_path_factory.mktemp("star"))


@pytest.fixture
def field(one_field):
    one_field.renew()
    return one_field


@pytest.mark.timeout(3000 if ALL else 300)
@pytest.mark.parametrize("end", [STRANGER, BYZANTINE], ids=["stranger", "worker"])
def test_forged_frames_change_nothing(field, end):
    """Every frame has one outcome, and only the workers' own frames are accepted."""
    mac, target = field.mac(end), field.world.network.switch.mac
    generator = generator_for(field.world, 1 + end, source=mac, target=target)
    if end == STRANGER:
        shots = generator.shots(STRANGERS_FRAMES)
    else:
        shots = forged_shots(field, generator, BYZANTINE, FRAMES)
    firing = FiringLink(field, BYZANTINE, shots, end=end)
    team = attack(field, firing)
    team.check()
    assert firing.fired == len(shots)
    counted, workers = field.counted(), team.total()
    assert sum(counted.values()) == field.arrived()
    assert counted["AGGREGATED"] == workers["features_sent"]
    assert counted["DONE_COLLECTED"] == team.round * field.world.barriers * WORKERS
    assert counted["RECALLED"] == workers["recalls"]
    assert counted["FETCHED"] == workers["fetches"]
    assert counted["RESENT"] == workers["features_served"]
    assert counted["WRONG_PLAN"] == 0
    assert sum(counted[name] for name in (*OF_ALL_REDUCES, "PASSED_ON")) == 0
    assert field.switch.exit_code() is None
