# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the P4Runtime services need of the switch behind them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from finsy.proto import p4r

from switchgnn.softswitch.codegen.compiler import CompiledProgram
from switchgnn.softswitch.p4runtime.schema import Schema
from switchgnn.softswitch.replication import ReplicationEngine
from switchgnn.softswitch.state import ProgramState

Result = TypeVar("Result")


class Device(Protocol):
    """A switch that programs are installed on."""

    @property
    def replication(self) -> ReplicationEngine:
        """Multicast groups and clone sessions."""

    def call(self, function: Callable[[], Result]) -> Result:
        """Runs a function between two packets."""

    def install(self, compiled: CompiledProgram) -> ProgramState:
        """Makes a program the running one, with fresh state."""

    def inject(self, port: int, frame: bytes) -> None:
        """Lets a frame arrive at a port."""


@dataclass
class InstalledPipeline:
    """A program in use by the controllers, and the replication entries they wrote."""

    config: p4r.ForwardingPipelineConfig
    schema: Schema
    state: ProgramState
    groups: dict[int, p4r.MulticastGroupEntry] = field(default_factory=dict)
    sessions: dict[int, p4r.CloneSessionEntry] = field(default_factory=dict)
