# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn plan --parts`: the job of workers on several machines."""

import importlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.machine import how_to_install
from switchgnn.commands.shared.steps import Steps
from switchgnn.planner.chosen import Asked
from switchgnn.planner.costs.seconds import Network
from switchgnn.planner.partition.leaf_spine import LeafSpine

if TYPE_CHECKING:
    from switchgnn.training.job import Job


@dataclass(frozen=True)
class WrittenJob:
    """What was written, to be told."""

    job: "Job"

    def as_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self.job))

    def sentence(self, folder: Path) -> str:
        """Return it in words."""
        job = self.job
        return (
            f"Job: {folder}: {job.data} with {job.vertices:,} vertices, {job.edges:,} directed "
            f"edges, {job.features} features and {job.classes} classes, for {job.workers} workers. "
            "Copy it to each machine; a worker reads the plan and its own part."
            f"{job.why and f' {job.why}'}"
        )


def write_job_of(
    data: str,
    workers: int,
    out: Path,
    *,
    asked: Asked,
    slots: int | None,
    leaf_spine: LeafSpine | None,
    seed: int,
    network: Network,
    width: int | None,
) -> WrittenJob:
    """Plan and write a job.

    Args:
        data: the name of a data set, or its file.
        workers: their number.
        out: the folder of the job.
        asked: the strategies.
        slots: the aggregators that a block may use; None: all of the program's.
        leaf_spine: the leaves that the workers are attached to; None: a star.
        seed: of the partition, the blocks and the order.
        network: what exchanges are predicted on, for the strategy `auto`.
        width: numbers of a row in them; None: as many as a frame usually has.

    Returns:
        What was written.

    Raises:
        SwitchGNNError: PyTorch is missing, or whatever stops planning or writing.
    """
    try:
        job = importlib.import_module("switchgnn.training.job")
    except ImportError as error:
        raise SwitchGNNError(
            f"A job needs PyTorch and PyTorch Geometric, but {error.name} is missing: "
            f"{how_to_install('training')}."
        ) from error
    steps = Steps()
    with steps:
        steps.tell(f"load {data}")
        return WrittenJob(
            job.write_job(
                data,
                workers,
                out,
                asked=asked,
                slots=slots,
                leaves=leaf_spine.leaves if leaf_spine else 0,
                spines=leaf_spine.spines if leaf_spine else 1,
                seed=seed,
                network=network,
                **({} if width is None else {"width": width}),
                progress=steps.tell,
                writing=steps.finishing,
            )
        )
