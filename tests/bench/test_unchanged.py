"""Bytes of rounds with unchanged rows, against a walk through the parts of the workers."""

import math

import numpy as np
import pytest

from bench.loads.unchanged import RoundOfPlan
from switchgnn.planner import Direction, build_plan
from tests.host.direct.crew import random_case

WORKERS, GROUP = 5, 4
# One row of 40 numbers is a frame of 32 and one of 8.
WIDTH, LANES, BODIES, EMPTY = 40, 32, (60 + 128) + (60 + 32), 2 * 60
PARTIAL = 1 << 31


@pytest.fixture(scope="module", params=["multicast", "cover"])
def plan(request):
    graph, assignment = random_case(80, 400, WORKERS, 3, directed=True)
    made = build_plan(
        graph,
        workers=WORKERS,
        slots=64,
        program="0" * 64,
        assignment=assignment,
        directions="both",
        lanes=LANES,
        send=request.param,
    )
    assert len(made.manifest.direction(Direction.BACKWARD).block_numbers) > 1
    return made


def frames_and_sums(plan, direction):
    """All frames as (block, worker, source), and the frames of each sum."""
    frames, sums = [], {}
    for block in plan.manifest.direction(direction).block_numbers:
        of_vertex, of_sum = {}, {}
        for part in plan.workers:
            for index in range(*part.send_indptr[block - 1 : block + 1]):
                source, row = int(part.send_source[index]), part.send_row_indptr[index]
                frame = block, part.worker, source
                frames.append(frame)
                for at in part.send_row[row : part.send_row_indptr[index + 1]]:
                    vertex = int(part.vertices[at])
                    if source < PARTIAL:
                        of_vertex[vertex] = frame
                    else:
                        of_sum[vertex, int(part.send_destination[index])] = frame
        for part in plan.workers:
            for index in range(*part.receive_indptr[block - 1 : block + 1]):
                destination = int(part.receive_vertex[index])
                inside = slice(*part.neighbour_indptr[index : index + 2])
                sums[block, destination] = {
                    of_sum.get((int(vertex), destination)) or of_vertex[int(vertex)]
                    for vertex in part.neighbour_vertex[inside]
                }
    return frames, sums


def acknowledgements(frames):
    """Their bytes, by worker and block, in each of both fragments."""
    number = {}
    for block, worker, _ in frames:
        number[block, worker] = number.get((block, worker), 0) + 1
    return 2 * 60 * sum(math.ceil(count / GROUP) for count in number.values())


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("direction", list(Direction))
def test_bytes_are_those_of_all_frames(plan, direction, share):
    frames, sums = frames_and_sums(plan, direction)
    sources = sorted({source for _, _, source in frames})
    counted = RoundOfPlan(plan, direction, WIDTH, GROUP)
    assert counted.rows == len(sources)
    changed = np.random.default_rng(1).random(len(sources)) < share
    found = counted.bytes_if(changed)
    moving = {source for source, moves in zip(sources, changed, strict=True) if moves}
    sent = [frame for frame in frames if frame[2] in moving]
    moved = {
        key for key, made_of in sums.items() if any(source in moving for _, _, source in made_of)
    }
    blocks = plan.manifest.direction(direction).block_numbers
    barriers = 2 * 88 * WORKERS * (1 + 2 * len(blocks))
    bodies = (len(sent) + len(moved)) * BODIES + barriers
    rest = len(frames) - len(sent) + len(sums) - len(moved)
    assert found.bodiless == bodies + rest * EMPTY + acknowledgements(frames)
    unmoved = [[frame for frame in sums[key] if frame[2] not in moving] for key in moved]
    # The worker with the least absent source sends the frame that stands for all of them.
    stand_ins = [min(absent, key=lambda frame: frame[2]) for absent in unmoved if absent]
    # As bits, all sources fit in one frame of 8 lanes.
    assert len(sources) <= 256
    agreement = 2 * WORKERS * (60 + 32)
    acks = acknowledgements(sent + stand_ins)
    assert found.agreed == bodies + len(stand_ins) * EMPTY + acks + agreement
    if share == 1:
        assert found.bodiless == found.plain
