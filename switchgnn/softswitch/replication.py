# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Multicast groups and clone sessions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True)
class Replica:
    """One copy; egress sees ``instance`` as ``egress_rid``."""

    port: int
    instance: int


@dataclass(frozen=True)
class CloneSession:
    """Copies made of a cloned packet; ``max_length`` is in bytes, 0 for the whole packet."""

    replicas: tuple[Replica, ...]
    max_length: int = 0


Value = TypeVar("Value")


class Published(dict[int, Value]):
    """A dictionary that reports changes to a listener; None reports a removal."""

    _listener: Callable[[int, Value | None], None] | None = None

    def subscribe(self, listener: Callable[[int, Value | None], None] | None) -> None:
        """Report the present items and every later change to a listener."""
        self._listener = listener
        for ident, value in self.items():
            self._report(ident, value)

    def _report(self, ident: int, value: Value | None) -> None:
        if self._listener is not None:
            self._listener(ident, value)

    def __setitem__(self, ident: int, value: Value) -> None:
        super().__setitem__(ident, value)
        self._report(ident, value)

    def __delitem__(self, ident: int) -> None:
        super().__delitem__(ident)
        self._report(ident, None)

    def clear(self) -> None:
        """Remove everything."""
        for ident in list(self):
            del self[ident]


class ReplicationEngine:
    """Multicast groups by id and clone sessions by id."""

    def __init__(self) -> None:
        self.groups: Published[tuple[Replica, ...]] = Published()
        self.sessions: Published[CloneSession] = Published()

    def reset(self) -> None:
        """Forget every group and session."""
        self.groups.clear()
        self.sessions.clear()
