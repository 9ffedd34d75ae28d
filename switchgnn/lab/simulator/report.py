# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What `switchgnn simulate` tells of an epoch."""

from dataclasses import asdict, dataclass
from typing import Any

from switchgnn.lab.simulator.request import SimulateOptions
from switchgnn.lab.simulator.setup import overlapped_seconds
from switchgnn.lab.simulator.simulation import SimulationRun
from switchgnn.lab.simulator.subject import SimulatedSystem
from switchgnn.lab.simulator.within import bytes_of_slot
from switchgnn.profiles import UNLIMITED

_BITS = 8
_MEGA = 1e6
# Told in another form, or not at all.
_NOT_TOLD = (
    *("series", "trace", "finished", "inside", "background"),
    *("feature_bytes_down", "sum_bytes_down"),
)


@dataclass(frozen=True, eq=False)
class SimulateReport:
    """An epoch: some exchanges, each as long as the one that was simulated, and computing.

    Attributes:
        options: what was asked for.
        subject: what was simulated.
        run: one exchange, of one layer.
        compute_seconds: of an epoch, by the model of `switchgnn/lab/simulator/request.py`.
    """

    options: SimulateOptions
    subject: SimulatedSystem
    run: SimulationRun
    compute_seconds: float

    @property
    def communication_seconds(self) -> float:
        """Return the seconds of an epoch in which workers exchange."""
        return self.options.layers * self.run.seconds

    @property
    def overlapped_seconds(self) -> float:
        """Return what bins save of an epoch by computing while they send."""
        communication = self.communication_seconds
        return overlapped_seconds(self.compute_seconds, communication, self.subject.bins)

    @property
    def epoch_seconds(self) -> float:
        """Return communication and computing, one after the other but for what overlaps."""
        return self.communication_seconds + self.compute_seconds - self.overlapped_seconds

    @property
    def bytes(self) -> int:
        """Return the bytes of one exchange on all links, both ways."""
        inside = self.run.inside
        return self.host_link_bytes + (inside.bytes if inside else 0)

    @property
    def host_link_bytes(self) -> int:
        """Return the same without links between switches."""
        return sum(self.run.bytes_up) + sum(self.run.bytes_down)

    @property
    def busiest_link_seconds(self) -> float:
        """Return what one exchange takes at least: bytes of the fullest link over its rate."""
        inside = self.run.inside
        between = (*inside.bytes_up, *inside.bytes_down) if inside else ()
        most = max(*self.run.bytes_up, *self.run.bytes_down, *between)
        return most * _BITS / (self.options.network.bandwidth * _MEGA)

    @property
    def aggregation_bits_per_second(self) -> float:
        """Return the bits of sums that leave for workers, over the time of an exchange."""
        return self._bits_per_second(sum(self.run.sum_bytes_down))

    @property
    def total_bits_per_second(self) -> float:
        """Return the same with features that leave as they came."""
        features = sum(self.run.feature_bytes_down)
        return self._bits_per_second(sum(self.run.sum_bytes_down) + features)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data; docs/simulator-output.md describes it."""
        run, subject, options = self.run, self.subject, self.options
        series = {name: list(values) for name, values in vars(run.series).items()}
        plain = {name: value for name, value in vars(run).items() if name not in _NOT_TOLD}
        background = None if run.background is None else run.background.to_dict()
        return {
            "system": subject.system,
            "graph": subject.graph,
            "plan": subject.digest,
            "workers": subject.setup.workers,
            "memory_bytes": subject.slots * bytes_of_slot(subject.lanes, options.slot_features),
            "slots": subject.slots,
            "slot_features": options.slot_features,
            "blocks": subject.setup.blocks,
            "left": subject.left,
            "rows_between_hosts": subject.rows_between_hosts,
            "layers": options.layers,
            "features": options.features,
            "mtu": options.mtu,
            "lanes": subject.lanes,
            "predicted_seconds": subject.predicted_seconds,
            "chosen": subject.chosen,
            "seed": options.seed,
            "network": asdict(options.network),
            **self._leaf_spine(),
            **self._switch(),
            "epoch_seconds": self.epoch_seconds,
            "communication_seconds": self.communication_seconds,
            "compute_seconds": self.compute_seconds,
            "overlapped_seconds": self.overlapped_seconds,
            "bins": subject.bins,
            "exchange_seconds": run.seconds,
            "busiest_link_seconds": self.busiest_link_seconds,
            "bytes": self.bytes,
            "aggregation_bits_per_second": self.aggregation_bits_per_second,
            "total_bits_per_second": self.total_bits_per_second,
            **plain,
            "events_per_second": run.events / run.wall_seconds,
            "background": background,
            "series": series,
        }

    def _leaf_spine(self) -> dict[str, Any]:
        """Return the members of a leaf-spine only."""
        network, inside = self.options.leaf_spine, self.run.inside
        if network is None or inside is None:
            return {}
        links = {name: list(values) for name, values in vars(inside).items()}
        return {
            **asdict(network),
            "host_link_bytes": self.host_link_bytes,
            "leaf_spine_bytes": inside.bytes,
            "partial_sums": sum(inside.sums_up),
            "leaf_spine_links": links,
        }

    def _switch(self) -> dict[str, Any]:
        """Return the members of a switch with limits only."""
        switch, memory = self.options.switch, self.subject.memory
        if switch == UNLIMITED and memory is None:
            return {}
        told = {"switch": switch.name, "banks": switch.banks}
        return told if memory is None else {**told, **memory.to_dict()}

    def _bits_per_second(self, frame_bytes: int) -> float:
        # One worker alone exchanges nothing, in no time.
        seconds = self.run.seconds
        return frame_bytes * _BITS / seconds if seconds else 0.0
