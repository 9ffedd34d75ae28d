# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Multicast groups and clone sessions."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Replica:
    """One copy: its egress port and its instance, which egress sees as ``egress_rid``."""

    port: int
    instance: int


@dataclass(frozen=True)
class CloneSession:
    """Copies made of a cloned packet; ``max_length`` is in bytes, 0 for the whole packet."""

    replicas: tuple[Replica, ...]
    class_of_service: int = 0
    max_length: int = 0


class ReplicationEngine:
    """Multicast groups by id and clone sessions by id."""

    def __init__(self) -> None:
        self.groups: dict[int, tuple[Replica, ...]] = {}
        self.sessions: dict[int, CloneSession] = {}

    def reset(self) -> None:
        """Forget every group and session."""
        self.groups.clear()
        self.sessions.clear()
