# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Your own PyTorch script on several workers, its neighbour sums made in switches.

``write_job`` plans and divides a data set; each worker's process calls ``join``.
"""

from switchgnn.training.errors import JobError
from switchgnn.training.job import Job, read_job, write_job
from switchgnn.training.join import Worker, join

__all__ = ["Job", "JobError", "Worker", "join", "read_job", "write_job"]
