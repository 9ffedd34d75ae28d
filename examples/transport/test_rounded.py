"""What `host-rounded` sends has 16 bits, and everything else is as with `host`."""

import numpy as np
from switchgnn.host.direct.rounded import RoundedTransport

from switchgnn.host.links.transport import NO_TRAFFIC
from switchgnn.host.registry import HOST, transport_kind
from switchgnn.planner import Direction


class Recorded:
    """Stands for `host`: keeps what it was given."""

    traffic = NO_TRAFFIC

    def __init__(self):
        self.rows = []

    def aggregate(self, rows, direction, *_):
        self.rows.append((rows, direction))
        return rows


def test_rows_are_rounded():
    copies = Recorded()
    rows = np.array([[1.0, 1 + 2**-12]], dtype=np.float32)
    sums = RoundedTransport(copies).aggregate(rows, Direction.BACKWARD)
    assert sums.dtype == np.float32
    assert sums.tolist() == [[1.0, 1.0]]
    assert [direction for _, direction in copies.rows] == [Direction.BACKWARD]


def test_it_has_a_name_and_the_schedules_of_host():
    assert transport_kind("host-rounded").write_schedules is HOST.write_schedules
