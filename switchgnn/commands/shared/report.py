# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The sections that reports share, each with its fields and its sentence."""

from dataclasses import asdict, dataclass
from typing import Any

from switchgnn.commands.shared.leaf_spine import LeafSpineReport
from switchgnn.softswitch.native.engine import Ahead


@dataclass(kw_only=True)
class RanOn:
    """The switch and fabric of a job.

    Attributes:
        reason: what was chosen, and why.
        backend: ``native`` or ``python`` code of the embedded switch; None for others.
        backend_reason: why it is Python where native code was possible; None elsewhere.
        compile_seconds: close to 0 when the result was cached; None without `backend`.
    """

    reason: str
    backend: str | None = None
    backend_reason: str | None = None
    compile_seconds: float | None = None

    def ran_on(self, hosts: str | None = None) -> str:
        """Return the choice, and the code of the program and of the hosts, as one sentence."""
        words = self.reason
        if self.backend is not None:
            words += f"; the program runs as {self.backend} code"
            if self.compile_seconds:
                words += f", compiled in {self.compile_seconds:.1f} s"
            if self.backend_reason is not None:
                words += f" ({self.backend_reason.rstrip('.')})"
        return f"{words}." if hosts is None else f"{words}; hosts run {hosts} code."

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        return asdict(self)


def ran_ahead(ahead: Ahead | None) -> dict[str, Any]:
    """Return the fields of a `RanOn` about compilation; None for BMv2."""
    if ahead is None:
        return {}
    return {
        "backend": ahead.backend.value,
        "backend_reason": ahead.reason,
        "compile_seconds": ahead.seconds,
    }


@dataclass(kw_only=True)
class Report(RanOn):
    """A run or a training: where it ran, its graph and its plan.

    Attributes:
        hosts: ``native`` or ``python`` code that takes frames apart; None without a network.
        edges: of the graph; an undirected edge counts twice.
        strategy, why: the preset that was asked for, and the reasons of its choices.
        partition, block_strategy, send, order: as in the plan's manifest; None where the transport
            has no use for them.
        weight: the cost of a contribution in the send strategy, in packets.
        lanes: numbers of the widest frame; None for transports without a plan.
        leaf_spine: the links between leaves and spines, if sums cross them.
    """

    hosts: str | None = None
    workers: int
    vertices: int
    edges: int
    strategy: str
    why: tuple[str, ...] = ()
    partition: str | None = None
    block_strategy: str | None = None
    send: str | None = None
    weight: float | None = None
    order: str | None = None
    lanes: int | None = None
    leaf_spine: LeafSpineReport | None = None

    @property
    def strategies(self) -> str:
        """The strategies of the plan as words; empty without a plan."""
        names = {
            "partition": self.partition,
            "blocks": self.block_strategy,
            "send": self.send,
            "order": self.order,
        }
        return ", ".join(f"{part} {name}" for part, name in names.items() if name is not None)
