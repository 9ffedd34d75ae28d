# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Leaves and a spine with a plan on them, and what each of them counts."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from switchgnn.controller import P4RuntimeClient, read_counters
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.link import Link
from tests.fuzz.world import FRAGMENTS, World, world_of
from tests.support.leaf_spine_fabrics import LeafSpineBed, leaf_spine_bed
from tests.support.speed import Deadline

_SETTLE_SECONDS = 10.0
Counts = dict[str, int]


class LeafSpineField:
    """Running switches and the links of the workers. Made by :func:`leaf_spine_field`."""

    def __init__(self, bed: LeafSpineBed, stack: ExitStack) -> None:
        self.bed = bed
        self.workers: int = bed.workers
        self.leaf_of_worker: tuple[int, ...] = bed.leaf_spine.leaf_of_worker
        # A station of every leaf: what a worker may send ordinary frames to.
        self.world: World = world_of(bed.graph, bed.plan, bed.site.networks.leaves[-1])
        self.links: list[Link] = [
            stack.enter_context(bed.link(worker)) for worker in range(bed.workers)
        ]
        self._clients = [
            stack.enter_context(P4RuntimeClient(switch.grpc_address, primary=False))
            for switch in bed.site.switches
        ]
        self._before = self._outcomes()

    @property
    def leaves(self) -> int:
        return len(self.bed.parts.leaves)

    @property
    def session(self) -> int:
        session: int = self.bed.session
        return session

    def addresses(self, worker: int) -> Addresses:
        addresses: Addresses = self.bed.addresses(worker)
        return addresses

    def mac(self, worker: int) -> str:
        mac: str = self.bed.site.station(worker).mac
        return mac

    def workers_of(self, leaf: int) -> list[int]:
        return [worker for worker in range(self.workers) if self.leaf_of_worker[worker] == leaf]

    def leaf_of(self, vertex: int) -> int:
        return self.leaf_of_worker[self.world.plan.assignment[vertex]]

    def partial_sums(self) -> list[tuple[int, int, int]]:
        """(Block, Src_id, Count) of all partial sums that leaves send up."""
        return [
            (int(block), int(source), int(count))
            for spine in self.bed.parts.spines
            for block, source, count in zip(
                spine.switch.entry_block,
                spine.switch.entry_source,
                spine.switch.entry_count,
                strict=True,
            )
        ]

    def completed_above(self) -> set[tuple[int, int]]:
        """(block, vertex) of all sums that spines complete."""
        return {
            (int(block), int(vertex))
            for spine in self.bed.parts.spines
            for block, vertex in zip(
                spine.switch.result_block, spine.switch.result_vertex, strict=True
            )
        }

    def barriers(self) -> int:
        """The number of barriers of a round."""
        return 1 + self.world.blocks * FRAGMENTS

    def arrived(self) -> list[int]:
        """Frames that reached each switch, by the counters of the network."""
        frames = [0] * len(self.bed.site.switches)
        for worker, link in enumerate(self.links):
            frames[self.leaf_of_worker[worker]] += link.traffic.frames_up
        relayed = self.bed.fabric.relay.counts()
        for cable in self.bed.site.cables:
            frames[cable.upper.switch] += relayed[cable.name]["frames"]["up"]
            frames[cable.lower.switch] += relayed[cable.name]["frames"]["down"]
        return frames

    def counted(self) -> list[Counts]:
        """Frames of each switch by outcome, when all are counted or time is up."""
        deadline = Deadline(_SETTLE_SECONDS)
        while True:
            delta = [
                {name: now[name] - before[name] for name in now}
                for now, before in zip(self._outcomes(), self._before, strict=True)
            ]
            settled = [sum(counts.values()) for counts in delta] == self.arrived()
            if settled or deadline.is_over():
                return delta

    def _outcomes(self) -> list[Counts]:
        return [
            {outcome.name: count for outcome, count in read_counters(client).outcomes.items()}
            for client in self._clients
        ]


@contextmanager
def leaf_spine_field(folder: Path, **options: int | str) -> Iterator[LeafSpineField]:
    with leaf_spine_bed(folder, **{"send": "cover", **options}) as bed, ExitStack() as stack:
        yield LeafSpineField(bed, stack)
