"""A testbed: a star whose switch serves a plan."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.testbeds.veth import VethStar
from switchgnn.controller import (
    P4RuntimeClient,
    SwitchPlan,
    program_cookie,
    read_counters,
    star_network,
)
from switchgnn.controller.base.place import ALONE
from switchgnn.controller.change import change_between, empty_state
from switchgnn.controller.controls.congestion import DEFAULT_ECN_THRESHOLD
from switchgnn.controller.controls.session import Session, SessionEntry
from switchgnn.controller.install import desired_state, with_session
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import MODIFY, encode_rows
from switchgnn.host.wire.addresses import Addresses
from switchgnn.p4src import Program, load_program
from switchgnn.planner import Graph, Plan, SwitchPart, write_plan
from switchgnn.topologies import Backend, Target, Topology, socket_address
from switchgnn.topologies.loopback_fabric import LoopbackFabric


@dataclass(frozen=True)
class Served:
    """A plan as a switch serves it."""

    plan: Plan  # the plan, for the workers
    switch: SwitchPart  # the switch's part of it, as ``program`` needs it
    program: Program  # the program of the switch
    # what the plan was made for, where it leaves destinations to the hosts
    graph: Graph | None = None

    @classmethod
    def whole(cls, plan: Plan) -> "Served":
        """Serve all of a plan with the product's program."""
        return cls(plan, plan.switch, load_program())


class Testbed:
    """A running star with a plan in its switch. Use it as a context manager."""

    def __init__(
        self,
        target: Target,
        served: Served,
        backend: Backend | None = None,
        *,
        loopback: bool = False,
    ) -> None:
        self.served = served
        self._backend = backend
        self._fabric: type[VethStar | LoopbackFabric] = LoopbackFabric if loopback else VethStar
        self.network = star_network(served.plan.manifest.workers)
        self.target = target
        self._stack = ExitStack()
        self._layout = Layout.from_text(served.program.p4info)
        self.session = 0

    def __enter__(self) -> "Testbed":
        with self._stack:
            self.folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="bench-")))
            self.plan_folder = self.folder / "plan"
            write_plan(self.served.plan, self.plan_folder)
            address = socket_address(self.folder)
            star = Topology(self.network.alone, self.target, (address,), backend=self._backend)
            self.fabric = self._stack.enter_context(self._fabric(star, self.folder))
            self.client = self._stack.enter_context(P4RuntimeClient(address))
            self._install()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def new_session(self) -> None:
        """Begin a new session in the switch, so that rounds start from 1 again."""
        self.session += 1
        entry = self._session_entry(self._switch_plan())
        rows = Session(self._layout).encode(ALONE.job, entry)
        self.client.write_requests(encode_rows(MODIFY, rows))

    def counters(self) -> dict[str, int]:
        """Return the counters of the switch by name."""
        return read_counters(self.client).named()

    def addresses(self, worker: int) -> Addresses:
        """Return the addresses of a worker."""
        return Addresses(self.network.neighbours[worker].station, self.network.switch)

    def _install(self) -> None:
        # `install` would refuse programs with other banks than the plan.
        program = self.served.program
        self.client.set_pipeline(program, program_cookie(program))
        plan = self._switch_plan()
        self.session = 1
        place = replace(ALONE, last_block=plan.manifest.blocks)
        desired = desired_state(
            plan, self._layout, self.network, DEFAULT_ECN_THRESHOLD, place=place
        )
        goal = with_session(desired, self._layout, place.job, self._session_entry(plan))
        change = change_between(self._layout, empty_state(self._layout), goal)
        self.client.write_requests(change.requests())

    def _session_entry(self, plan: SwitchPlan) -> SessionEntry:
        # The raw load has no barriers, which would advance the switch's turn.
        return replace(Session(self._layout).entry(self.session, plan), any_tag=1)

    def _switch_plan(self) -> SwitchPlan:
        return SwitchPlan(self.served.plan.manifest, self.served.switch)
