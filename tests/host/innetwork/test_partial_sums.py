"""Partial sums of a worker's own: what its packets carry, and mistakes in them."""

import numpy as np
import pytest

from switchgnn.host.innetwork.schedule import block_schedules
from switchgnn.host.wire.header import BODY_AT, Kind, fragment_words, unpack_header
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID
from switchgnn.planner.graphs.load import load_graph
from tests.host.addresses import ADDRESSES, SESSION
from tests.host.innetwork.test_exchange import plan_of


@pytest.fixture(scope="module")
def graph():
    return load_graph("random:60:120:1")


@pytest.fixture(scope="module")
def plan(graph):
    made = plan_of(graph, 3, slots=64, send="cover")
    assert all((part.send_source >= FIRST_RESERVED_ID).any() for part in made.workers)
    return made


def test_packets_carry_the_sum_of_their_rows_modulo_2_to_the_32(plan):
    generator = np.random.default_rng(1)
    for part in plan.workers:
        lanes = generator.integers(-(2**31), 2**31, (len(part.vertices), 32)).astype(np.int32)
        for schedule in block_schedules(part, ADDRESSES, 4, SESSION):
            rows = schedule.frames.fill(1, *fragment_words(32, 32), schedule.payloads(lanes))
            first = part.send_indptr[schedule.block_id - 1]
            for index in range(rows.count):
                row = rows.frame(index)
                low, high = part.send_row_indptr[first + index : first + index + 2]
                summed = part.send_row[low:high].tolist()
                header = unpack_header(row)
                assert header.kind is Kind.FEATURE
                assert (header.src_id, header.count) == (
                    part.send_source[first + index],
                    len(summed),
                )
                body = np.frombuffer(row, dtype=">u4", offset=BODY_AT).tolist()
                total = [sum(int(lanes[r, at]) for r in summed) % 2**32 for at in range(32)]
                assert body == total
