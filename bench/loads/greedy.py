"""`python -m bench.loads.greedy FILE PORT...`: a job that loads a kept switch without a pause."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bench.loads.raw import RawLoad
from bench.testbeds.testbed import Served
from bench.testbeds.workload import standard_plan
from switchgnn.base.network_file import DescribedNetwork, networks_of, read_network
from switchgnn.controller import DesiredStates, JobRequest, Share, SwitchPlan, install_each
from switchgnn.controller.controls.session import Session
from switchgnn.controller.p4runtime.rows import MODIFY, encode_rows
from switchgnn.controller.target import client_of, served_jobs
from switchgnn.host.wire.addresses import Addresses

NAME = "greedy"
READY = "loading"
_SECONDS = 0.2


@dataclass
class _Bed:
    """What a raw load needs of a testbed."""

    network: DescribedNetwork
    served: Served
    session: int

    @property
    def fabric(self) -> "_Bed":
        return self

    def worker_link(self, worker: int) -> str:
        return self.network.workers[worker].opens

    def addresses(self, worker: int) -> Addresses:
        return Addresses(self.network.workers[worker].station, self.network.switches[0].station)

    def counters(self) -> dict[str, int]:
        return {"completed": 0, "contributions": 0}


def main(file: str, ports: Sequence[int]) -> None:
    """Install the job of the standard load, let it begin any round, and send until the end."""
    whole = read_network(Path(file))
    network = replace(whole, workers=tuple(w for w in whole.workers if w.port in ports))
    plan = standard_plan()
    served = Served.whole(plan)
    with client_of(network.switches[0]) as client:
        share = Share(SwitchPlan(plan.manifest, plan.switch), *networks_of(network), client)
        report = install_each([share], DesiredStates(served.program), JobRequest(NAME))
        session = Session(client.get_layout())
        own = next(each for each in served_jobs(client) if each[0].name == NAME)
        any_tag = session.encode(own[0].job, replace(own[1], any_tag=1))
        client.write_requests(encode_rows(MODIFY, any_tag))
    with RawLoad(_Bed(network, served, report.session)) as load, suppress(KeyboardInterrupt):
        sys.stdout.write(READY + "\n")
        sys.stdout.flush()
        while True:
            load.run(_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1], [int(port) for port in sys.argv[2:]])
