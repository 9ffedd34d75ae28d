"""Jobs of one switch do not touch each other."""

import hashlib

from switchgnn.controller.check import slots_per_bank
from switchgnn.controller.controls.one_bank import fitted
from switchgnn.controller.controls.outcome import Outcome
from switchgnn.host.wire.header import PROTOCOL, is_plain
from tests.simulation.checks.check import Packet, SwitchCheck

# What a job of honest workers with its own numbers never causes.
_NEVER = (
    *(Outcome.WRONG_PORT, Outcome.UNKNOWN_VERTEX, Outcome.WRONG_COUNT, Outcome.WRONG_PLAN),
    *(Outcome.UNKNOWN_BLOCK, Outcome.WRONG_SESSION, Outcome.WRONG_MAGNITUDE),
    Outcome.UNKNOWN_KIND,
)


class JobsApart(SwitchCheck):
    """Compares what leaves for a job's workers, and what is counted for it, with what they send."""

    name = "jobs apart"

    def begin(self, scene):
        super().begin(scene)
        # What the second job got, and what the switch has of it at the end; {}: not known.
        self.held = {}
        self._ports = {port for _, port in scene.worker_ports}
        self._began = self._taken = 0
        self._elsewhere = False
        self._given = hashlib.sha256()

    def session_begins(self):
        self._began, before = self.scene.scheduler.now, self.scene.before
        # The job before may have been removed since, and left its part to this one.
        self._elsewhere = before is not None and before.unwatched > 0

    def taken(self, switch, port, frames):
        if port in self._ports:
            self._taken += len(frames)

    def given(self, switch, port, frames):
        other = self.scene.other
        if other is None or port not in self._ports or switch is not self.scene.switches[0]:
            return
        self._given.update(f"{self.scene.scheduler.now - self._began} {port} {frames}".encode())
        # A restarted switch may use a number again, and a Byzantine worker guess one.
        if other.job is None or switch.starts > 1 or self.scene.byzantine:
            return
        packets = [Packet.of(frame) for frame in frames if is_plain(frame, PROTOCOL)]
        if other.job.session in {packet.session for packet in packets}:
            self.tell(f"a packet of the other job leaves through port {port}")

    def session_ends(self):
        # Late frames arrive after it.
        if self._known:
            state, part = self.scene.switches[0].engine.state, Part(self.scene)
            names = {name: each.cells for name, each in state.registers.items()}
            names |= {name: each.packets for name, each in state.counters.items()}
            held = {name: part.of(cells, name) for name, cells in names.items()}
            session, given = self.scene.job.session, self._given.hexdigest()
            self.held = {"session": session, "frames given": given, **held}

    def conclude(self, *, in_time):
        if not self._known:
            return
        counters = self.scene.switches[0].engine.state.counters
        (counter,) = [counters[name] for name in counters if name.endswith("outcome.outcome")]
        outcomes = Part(self.scene).of(counter.packets)
        wrong = [each.name for each in _NEVER if outcomes[each]]
        if wrong or sum(outcomes) != self._taken:
            self.tell(
                f"the switch has counted {sum(outcomes)} frames of the second job, whose workers "
                f"have sent {self._taken}; some are {wrong}"
            )

    @property
    def _known(self):
        """Whether the part of the second job is known, and has all that it got."""
        started = self.scene.switches[0].starts == 1 and self._began
        return self.scene.is_second and started and not self._elsewhere


class Part:
    """What belongs to the second job of each array of a switch, by docs/jobs.md."""

    def __init__(self, scene):
        before = scene.before
        layout = scene.subject.desired.layout
        own = fitted(scene.subject.shares[0].plan, layout)
        plan = before and fitted(before.subject.shares[0].plan, layout)
        job = 2 if before else 1
        workers = before.subject.topology.workers if before else 0, scene.subject.topology.workers
        sources = len(plan.switch.source_vertex) if plan else 0, len(own.switch.source_vertex)
        slots = slots_per_bank(plan, layout) if plan else 0, slots_per_bank(own, layout)
        self._sources = sources
        pools = range(4)
        # Beginning and length of each part, by the length of the array.
        self._parts = {
            17: [(job, 1)],
            17 * 2: [(job, 1), (17 + job, 1)],
            17 * 4: [(4 * job, 4)],
            17 * 4 + 16 * 128: [(4 * job, 4), (17 * 4 + 128 * (job - 1), 128)],
            17 * 16: [(16 * job, 16)],
            17 * 32: [(32 * job, 32)],
            128: [workers],
            4 * 128: [(128 * pool + workers[0], workers[1]) for pool in pools],
            4 * 128 * 32: [(32 * (128 * pool + workers[0]), 32 * workers[1]) for pool in pools],
            4 << 18: [((pool << 18) + sources[0], sources[1]) for pool in pools],
            16 * 128: [(128 * (job - 1), 128)],
            32768 + 16 * 128: [slots],
            10240 + 16 * 128: [slots, (10240 + 128 * (job - 1), 128)],
        }

    def of(self, cells, name=""):
        """Return the numbers in the cells of the job; none of an array that jobs share."""
        # The Tofino program has a register of last tags for each pool.
        of_pool = ".last_tag" in name and name[-1].isdigit()
        parts = [self._sources] if of_pool else self._parts.get(len(cells), ())
        return [int(each) for first, count in parts for each in cells[first : first + count]]
