"""What exchanges take on this machine where links have no limit, measured once and cached."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from switchgnn import __version__
from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.native import cache_folder, compiled_once
from switchgnn.host.base.pace import Pace
from switchgnn.host.wire.native import hosts_run_as
from switchgnn.jobs.run import RunOptions, run_job
from switchgnn.jobs.runner import NetworkJob
from switchgnn.p4src import load_program
from switchgnn.planner.costs.machine import Cost, MeasuredCosts
from switchgnn.softswitch.native.build import Backend, processor
from switchgnn.softswitch.native.engine import compile_ahead
from switchgnn.topologies import Target
from switchgnn.topologies.forkserver import Forkserver

# A small and a large graph in which all workers have rows for each other, and how often these are
# exchanged by each back end; the first time loads code. A switch that runs as Python takes long.
_ROUNDS = {
    "random:100:600:1": {Backend.NATIVE: 150, Backend.PYTHON: 6},
    "random:600:12000:1": {Backend.NATIVE: 50, Backend.PYTHON: 2},
}
_WIDTH, _MOST_WORKERS = 64, 8
# The quantile of the times of exchanges that counts: other programs disturb these least.
_UNDISTURBED = 0.05
_LOG = logging.getLogger(__name__)


def measured_here(
    job: NetworkJob, forkserver: Forkserver | None, tell: Callable[[str], None]
) -> MeasuredCosts | None:
    """Return what exchanges take on this machine, measuring them the first time.

    None where links have a limit, or nothing can be measured: the times of the profile then count.
    """
    target = job.choose_fabric().target
    if job.bandwidth is not None or job.leaf_spine is not None or target is not Target.EMBEDDED:
        return None
    workers = max(2, min(job.workers, _MOST_WORKERS))

    def measure(file: Path) -> None:
        tell("measure exchanges on this machine, once")
        switch, hosts = (
            Cost.through(
                workers, *(_exchange(job, workers, forkserver, name, left) for name in _ROUNDS)
            )
            for left in (False, True)
        )
        file.write_bytes(msgspec.json.encode(MeasuredCosts(switch, hosts)))

    code = (compile_ahead(load_program().json, job.backend).backend.value, hosts_run_as())
    made_of = (__version__, processor(), str(os.cpu_count()), *code, job.fabric, str(workers))
    try:
        file = compiled_once(cache_folder("exchanges"), "seconds", made_of, measure)
        return msgspec.json.decode(file.read_bytes(), type=MeasuredCosts)
    except (OSError, SwitchGNNError, msgspec.DecodeError) as error:
        _LOG.info("The profile of the switch predicts exchanges: %s", error)
        return None


def _exchange(
    job: NetworkJob, workers: int, forkserver: Forkserver | None, graph: str, left: bool
) -> tuple[float, float]:
    rounds = _ROUNDS[graph][compile_ahead(load_program().json, job.backend).backend]
    network: dict[str, Any] = {"fabric": job.fabric, "backend": job.backend, "bandwidth": None}
    load: dict[str, Any] = {"graph": graph, "features": _WIDTH, "rounds": rounds, "left": left}
    options = RunOptions(
        **network,
        **load,
        workers=workers,
        slots=load_program().slots,
        target=Target.EMBEDDED.value,
        ecn_threshold=job.ecn_threshold,
        queue=job.queue,
        seed=0,
        pace=Pace(window=128, timeout=5.0),
    )
    ends = run_job(options, lambda _name, _done, _total: None, forkserver=forkserver).per_worker
    amount = sum(
        each.host_partial_bytes_up if left else each.features_sent + each.sums_received
        for each in ends
    )
    # Between hosts some workers begin the next exchange while others are still in this one.
    slowest = np.array([each.round_seconds[1:] for each in ends]).max(axis=0)
    return amount / rounds, float(np.quantile(slowest, _UNDISTURBED))
