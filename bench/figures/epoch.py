# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Epochs on links as fast as the machine can: the switch compared with copies between hosts."""

from collections.abc import Iterator

from bench.line import Line
from bench.loads.training import WORKERS, Setting, Trainings, lacks_training
from bench.settings import Settings
from switchgnn.host.registry import HOST, SWITCH
from switchgnn.topologies import FabricKind, Target

NAME = "epoch"
OWN_NAMESPACE = False

# What `make run` trains on.
_GRAPH = "digits:80"
_EPOCHS = 20
_RATIO = 1.0


def missing() -> str | None:
    """Return what the machine lacks for this figure."""
    return lacks_training()


def run(settings: Settings) -> Iterator[Line]:
    """Measure on the embedded switch over loopback."""
    setting = Setting(_GRAPH, _EPOCHS, Target.EMBEDDED, FabricKind.LOOPBACK)
    trainings = Trainings(settings, setting, (SWITCH.name, HOST.name))
    yield trainings.epochs(NAME, f"{_GRAPH}, {WORKERS} workers", HOST.name, _RATIO)
