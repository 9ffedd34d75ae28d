"""Your own PyTorch script on several workers, its neighbour sums made in switches.

``write_job`` plans and divides a data set; each worker's process calls ``join``.

Importing this module registers the backend ``switchgnn`` of torch.distributed, whose all-reduces
are made in a switch; ``switch_hook`` does the same for the gradients of DistributedDataParallel
beside another backend.
"""

from switchgnn.base.machine import how_to_install
from switchgnn.torch_backend import register
from switchgnn.training.base.errors import JobError
from switchgnn.training.job import Job, read_job, write_job

try:
    from switchgnn.training.exchange.process_group import SwitchHook, switch_hook
    from switchgnn.training.script import Worker, join
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"switchgnn.torch needs PyTorch and PyTorch Geometric, but {error.name} is missing: "
        f"{how_to_install('training')}.",
        name=error.name,
    ) from error

__all__ = [
    "Job",
    "JobError",
    "SwitchHook",
    "Worker",
    "join",
    "read_job",
    "switch_hook",
    "write_job",
]

register()
