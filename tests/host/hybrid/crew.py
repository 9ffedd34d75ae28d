"""Workers of a plan that leaves destinations to the hosts, as threads on one switch."""

from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

from switchgnn.host.direct.frames import PROTOCOL as DIRECT_PROTOCOL
from switchgnn.host.links.faults import Faults, FaultyLink
from switchgnn.host.links.transport import WorkerEnd
from switchgnn.host.paths.edges import host_edges
from switchgnn.host.paths.transport import PathsTransport
from switchgnn.host.wire.header import PROTOCOL
from switchgnn.planner.build import build_resolved
from tests.host.direct.crew import remote_edges, stations, together
from tests.support.fabrics import PATIENT
from tests.support.speed import pace_here


@contextmanager
def crew(bed, *, faults="", pace=PATIENT, mtu="1500", on_block=None):
    """A transport for each worker of the bed's plan; `on_block` is called with each block done."""
    plan = bed.plan
    with ExitStack() as stack:
        made = []
        for part, own in zip(plan.workers, host_edges(bed.graph, plan), strict=True):
            link = stack.enter_context(bed.link(part.worker, PROTOCOL, DIRECT_PROTOCOL))
            if faults:
                link = FaultyLink(link, Faults.parse(faults), part.worker)
            end = WorkerEnd(
                worker=part.worker,
                workers=bed.workers,
                vertices=len(part.vertices),
                pace=pace_here(pace),
                link="",
                addresses=bed.addresses(part.worker),
                stations=stations(bed.workers),
                plan=Path(),
                session=bed.session,
                mtu=mtu,
            )
            made.append(PathsTransport(end, plan.manifest, part, own, link, on_block=on_block))
        yield made


def whole_numbers(bed, width, seed=0):
    """Features whose float32 sums are exact in any order."""
    shape = (bed.graph.vertices, width)
    return np.random.default_rng(seed).integers(-1000, 1000, shape).astype(np.float32)


def run(bed, transports, calls):
    """Make all calls of (features, direction); return for each (fixed, scale, sums of hosts)."""

    def work(worker):
        rows = bed.plan.workers[worker].vertices
        results = [transports[worker].aggregate_fixed(x[rows], direction) for x, direction in calls]
        transports[worker].close()
        return results

    found, per_worker = [], together(work, bed.workers)
    for index, (features, _) in enumerate(calls):
        fixed, sums = np.zeros(features.shape, dtype=np.int64), np.zeros_like(features)
        scales = {results[index].fixed_point.scale for results in per_worker}
        assert len(scales) == 1
        for part, results in zip(bed.plan.workers, per_worker, strict=True):
            fixed[part.vertices] = results[index].values
            sums[part.vertices] = results[index].of_hosts
        found.append((fixed, scales.pop(), sums))
    return found


def expected(bed, features, direction, left, scale):
    matrix = remote_edges(bed.graph, bed.plan.assignment, direction)
    fixed = matrix @ np.rint(features.astype(np.float64) * scale).astype(np.int64)
    sums = matrix @ features.astype(np.float64)
    return np.where(left[:, None], 0, fixed), np.where(left[:, None], sums, 0)


def wrong(bed, calls, found):
    """How many sums of both parts differ from those over the whole graph."""
    differ = 0
    for (features, direction), (fixed, scale, sums) in zip(calls, found, strict=True):
        right = expected(bed, features, direction, bed.plan.left(direction), scale)
        differ += int((fixed != right[0]).sum() + (sums != right[1]).sum())
    return differ


@contextmanager
def leaving(module, left):
    """Every plan that the module makes leaves these destinations to the hosts."""

    def build(*args, **options):
        return build_resolved(*args, **(options | {"left": left}))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "build_resolved", build)
        yield
