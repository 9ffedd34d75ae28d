"""Features are acknowledged when they have arrived, and let through once."""

from collections import defaultdict

from switchgnn.host.wire.header import PROTOCOL, SESSION_MASK, Kind, is_plain
from tests.simulation.checks.check import Packet, PacketCheck, SwitchCheck, acknowledged, kind_in


class AcknowledgedArrived(PacketCheck):
    """Compares the number in each ACK with the distinct features of the group."""

    name = "acknowledged arrived"
    takes = frozenset({Kind.FEATURE})
    gives = frozenset({Kind.ACK, Kind.SUM})

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
        arrived, count = len(self._arrived[switch.number][group]), acknowledged(packet)
        if count is not None and count > arrived and self.scene.honest(worker):
            self.tell(
                f"{switch.name} acknowledges {count} features of group "
                f"{packet.feature_group} of worker {worker} in {packet.unit}: {arrived} arrived"
            )


_AGGREGATED = 0


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
