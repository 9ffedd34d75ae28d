# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The switch as seen by the P4Runtime service."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from finsy.proto import p4r

from switchgnn.softswitch.loader import GivenProgram
from switchgnn.softswitch.native.state import NativeBatches
from switchgnn.softswitch.p4runtime.schema import Schema
from switchgnn.softswitch.replication import ReplicationEngine
from switchgnn.softswitch.state import ProgramState

Result = TypeVar("Result")


class Device(Protocol):
    """A switch on which programs are installed."""

    @property
    def replication(self) -> ReplicationEngine:
        """Multicast groups and clone sessions."""

    def call(self, function: Callable[[], Result]) -> Result:
        """Run a function between two packets and return its result."""

    def prepare(self, given: GivenProgram) -> "PreparedProgram":
        """Make all that a program needs to run; raise SoftSwitchError if it cannot run."""

    def inject(self, port: int, frame: bytes) -> None:
        """Process a frame as if it had arrived at a port."""


@dataclass(frozen=True)
class PreparedProgram:
    """A program's fresh state, and the function that replaces the running program by it."""

    state: ProgramState
    install: Callable[[], None]


@dataclass
class InstalledPipeline:
    """An installed program; ``batches`` needs native code.

    ``replication`` has multicast groups and clone sessions by the name of their field and id.
    """

    config: p4r.ForwardingPipelineConfig
    schema: Schema
    state: ProgramState
    batches: NativeBatches | None
    replication: dict[tuple[str, int], p4r.PacketReplicationEngineEntry] = field(
        default_factory=dict
    )
