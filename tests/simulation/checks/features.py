"""Features are sent in windows, acknowledged when they have arrived, and let through once."""

from collections import Counter, defaultdict

from switchgnn.host.wire.header import PROTOCOL, SESSION_MASK, Kind, is_plain
from tests.simulation.checks.check import Packet, PacketCheck, SwitchCheck, kind_in


class AcknowledgedArrived(PacketCheck):
    """Compares the number in each ACK with the distinct features of the group."""

    name = "acknowledged arrived"
    takes = frozenset({Kind.FEATURE})
    gives = frozenset({Kind.ACK})

    def session_begins(self):
        self._arrived = {each.number: defaultdict(set) for each in self.scene.switches}

    def ends(self, switch):
        if self.scene.job is not None:
            self._arrived[switch.number].clear()

    def took(self, switch, worker, packet):
        if not packet.resend:
            group = worker, packet.unit, packet.feature_group
            self._arrived[switch.number][group].add(packet.src_id)

    def gave(self, switch, worker, packet):
        group = worker, packet.unit, packet.feature_group
        arrived = len(self._arrived[switch.number][group])
        if packet.count > arrived and self.scene.honest(worker):
            self.tell(
                f"{switch.name} acknowledges {packet.count} features of group "
                f"{packet.feature_group} of worker {worker} in {packet.unit}: {arrived} arrived"
            )


_AGGREGATED = 0
# The groups that a switch tells apart.
_GROUPS_APART = 32


class WindowHeld(PacketCheck):
    """Compares the features that have arrived with the acknowledgements that have left.

    A worker has sent at least the former, and heard at most the latter. Its window is that of all
    units in flight.
    """

    name = "window held"
    takes = frozenset({Kind.FEATURE})
    gives = frozenset({Kind.ACK})

    def session_begins(self):
        # By worker and round, the units of their features; and by worker and unit.
        self._arrived, self._acknowledged = defaultdict(set), Counter()
        self._confirmed = defaultdict(Counter)
        self._furthest = {}

    def took(self, switch, worker, packet):
        if packet.resend or not self.scene.honest(worker):
            return
        where, now = (worker, packet.unit), (worker, packet.unit.round)
        arrived, confirmed = self._arrived[now], self._confirmed[where]
        arrived.add((packet.unit, packet.src_id))
        window = self.scene.scenario.window
        if len(arrived) - self._acknowledged[now] > window:
            self.tell(f"worker {worker} has more than {window} features in flight")
        if packet.feature_group > self._furthest.get(where, _GROUPS_APART - 1):
            self._furthest[where] = packet.feature_group
            size, last = self.scene.job.pace.group_size, packet.feature_group - _GROUPS_APART
            if any(confirmed[group] < size for group in range(last + 1)):
                self.tell(
                    f"worker {worker} sends group {packet.feature_group} before all of group "
                    f"{last} are acknowledged"
                )

    def gave(self, switch, worker, packet):
        groups = self._confirmed[worker, packet.unit]
        more = max(0, packet.count - groups[packet.feature_group])
        groups[packet.feature_group] += more
        self._acknowledged[worker, packet.unit.round] += more


class SourcesOnce(PacketCheck):
    """Compares the number of features that a switch has accepted with the distinct arrivals."""

    name = "sources once"
    takes = frozenset({Kind.FEATURE})
    all_sessions = True

    def begin(self, scene):
        super().begin(scene)
        part = scene.subject.plan.switch
        self._sources = set(
            zip(part.source_vertex.tolist(), part.source_worker.tolist(), strict=True)
        )
        self._came = defaultdict(set)
        self._sessions = 0

    def session_begins(self):
        # The numbers of sessions may be used again.
        self._sessions += 1

    def took(self, switch, worker, packet):
        job = self.scene.job
        own = job is not None and packet.session == job.session & SESSION_MASK
        if own and not packet.resend and (packet.src_id, worker) in self._sources:
            self._came[switch.number].add((self._sessions, packet.unit, packet.src_id))

    def ends(self, switch):
        came = len(self._came.pop(switch.number, ()))
        # A spine adds parts from leaves, which are not checked here.
        if switch.engine is None or switch.number >= (self.scene.scenario.leaves or 1):
            return
        counters = switch.engine.state.counters.items()
        outcomes = next(each for name, each in counters if name.endswith(".outcome"))
        accepted = outcomes.packets[_AGGREGATED]
        if accepted > came:
            self.tell(f"{switch.name} has let {accepted} features through, of {came} that came")

    def conclude(self, *, in_time):
        for switch in self.scene.switches:
            self.ends(switch)


class PartsMarked(SwitchCheck):
    """Looks at the Level of features that leave leaves for spines."""

    name = "parts marked"

    def begin(self, scene):
        super().begin(scene)
        self._cables = {(lower.switch, lower.port) for _, lower, _ in scene.subject.topology.cables}

    def given(self, switch, port, frames):
        if (switch.number, port) not in self._cables:
            return
        for frame in frames:
            if kind_in(frame) == Kind.FEATURE:
                packet = Packet.of(frame)
                # A leaf forwards frames that are no packets, even if they look like some.
                if packet.level != 1 and not packet.resend and is_plain(frame, PROTOCOL):
                    self.tell(f"{switch.name} sends a partial sum up with Level {packet.level}")
