# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What forks the workers of a training, so that PyTorch is imported once for all of them."""

from switchgnn.topologies.nursery import Nursery

_PRELOAD = ("switchgnn.training.worker", "switchgnn.commands.main")
# Threads of OpenMP that wait for each other would spin, and switch and workers share the cores.
# https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fWAIT_005fPOLICY.html
_ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE"}
TRAIN_WORKER = ("switchgnn", "train-worker")


def training_nursery() -> Nursery:
    """Return what forks training workers, not yet started."""
    return Nursery(_PRELOAD, _ENVIRONMENT)
