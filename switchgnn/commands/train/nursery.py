# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What forks the workers of a training, so that PyTorch is imported once for all of them."""

import importlib
import os

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.machine import how_to_install, python_program
from switchgnn.commands.shared.nursery import fork_nursery
from switchgnn.topologies.processes.nursery import Nursery

# Threads of OpenMP that wait for each other would spin, and switch and workers share the cores.
# https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fWAIT_005fPOLICY.html
ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE"}
TRAIN_WORKER = python_program("switchgnn.commands", "train-worker")


def training_nursery() -> Nursery:
    """Import PyTorch; return a nursery, not yet started, that is forked from this process.

    It must be started before PyTorch computes anything here: a process that is forked from one
    with threads of OpenMP waits for them without end.
    https://github.com/pytorch/pytorch/issues/17199

    Raises:
        SwitchGNNError: PyTorch or PyTorch Geometric is not installed.
    """
    os.environ.update(ENVIRONMENT)
    try:
        importlib.import_module("switchgnn.training.worker")
    except ImportError as error:
        raise SwitchGNNError(
            f"Training needs PyTorch and PyTorch Geometric, but {error.name} is missing: "
            f"{how_to_install('training')}."
        ) from error
    return fork_nursery()
