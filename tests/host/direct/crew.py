"""Workers as threads, on a network of queues that forwards by MAC address."""

import queue
from collections import Counter
from contextlib import nullcontext

import numpy as np
from scipy.sparse import csr_matrix

from switchgnn.base.network import star_network
from switchgnn.host.direct.transport import DirectTransport
from switchgnn.host.links.faults import Faults, FaultyLink
from switchgnn.host.wire.header import KIND_AT
from switchgnn.planner import Direction, graph_from_edges
from tests.host.addresses import QueueLink
from tests.support.fabrics import PATIENT, in_threads
from tests.support.speed import pace_here

BOTH = (Direction.FORWARD, Direction.BACKWARD)


class Hub:
    """Forwards frames, remembers all that were sent, and marks or drops what it is told to."""

    def __init__(self, workers, touch=lambda frame: frame):
        self.stations = stations(workers)
        self.inboxes = [queue.SimpleQueue() for _ in range(workers)]
        self.touch = touch
        self.sent = []

    def link(self, worker):
        return QueueLink(worker, self.take, self.inboxes[worker])

    def take(self, frame):
        self.sent.append(frame)
        frame = self.touch(frame)
        if frame is not None:
            self.inboxes[[mac_bytes(each) for each in self.stations].index(frame[:6])].put(frame)

    def kinds(self):
        return Counter((frame[KIND_AT] & 0xF, len(frame)) for frame in self.sent)


def stations(workers):
    return tuple(each.station for each in star_network(workers).neighbours)


def on_hub(schedules, *, hub=None, faults="", pace=PATIENT, backward=None, **options):
    """A transport for each schedule, on a hub of their own."""
    hub = hub or Hub(len(schedules))
    made = []
    for worker, schedule in enumerate(schedules):
        link = hub.link(worker)
        if faults:
            link = FaultyLink(link, Faults.parse(faults), worker)
        if backward:
            options["backward"] = backward[worker]
        made.append(DirectTransport(schedule, link, hub.stations, pace=pace_here(pace), **options))
    return made


def together(work, workers):
    """Run work(worker) in a thread for each worker; raise the first error."""
    results, errors = [None] * workers, []

    def run(worker):
        try:
            results[worker] = work(worker)
        # What pytest raises where nothing was raised is no Exception.
        except BaseException as error:
            errors.append(error)

    in_threads(run, workers)
    if errors:
        raise errors[0]
    return results


def exchange(transports, parts, calls, *, close=True):
    """All calls of (features, direction, new epoch?); returns float32[calls, V, F] sums."""

    def work(worker):
        sums = []
        for features, direction, new_epoch in calls:
            if new_epoch:
                transports[worker].next_epoch()
            sums.append(transports[worker].aggregate(features[parts[worker]], direction))
        if close:
            transports[worker].close()
        return sums

    per_worker = together(work, len(transports))
    return whole_sums([features for features, _, _ in calls], parts, per_worker)


def whole_sums(features, parts, per_worker):
    """The sums of all vertices, for the features of each call, from those of each worker."""
    results = [np.zeros_like(each) for each in features]
    for part, sums in zip(parts, per_worker, strict=True):
        for whole, own in zip(results, sums, strict=True):
            whole[part] = own
    return results


def check_round(transports, graph, assignment, features):
    parts = parts_of(assignment, len(transports))
    (sums,) = exchange(transports, parts, [(features, Direction.FORWARD, False)])
    assert wrong(graph, assignment, features, sums) == 0


def features_for(graph, width, seed=0):
    return np.random.default_rng(seed).standard_normal((graph.vertices, width), dtype=np.float32)


def mac_bytes(station):
    return bytes.fromhex(station.mac.replace(":", ""))


def parts_of(assignment, workers):
    return [np.flatnonzero(assignment == worker) for worker in range(workers)]


def random_case(vertices, edges, workers, seed, *, directed):
    """A graph and an assignment that leaves some workers nearly empty."""
    rng = np.random.default_rng(seed)
    graph = graph_from_edges(
        rng.integers(0, vertices, edges),
        rng.integers(0, vertices, edges),
        name="random",
        vertices=vertices,
        directed=directed,
    )
    weights = rng.random(workers) + 0.05
    return graph, rng.choice(workers, vertices, p=weights / weights.sum()).astype(np.int32)


def remote_edges(graph, assignment, direction):
    """int64[V, V], sparse: which vertices are added to which others, of other workers."""
    source, destination = graph.edges()
    crosses = assignment[source] != assignment[destination]
    shape = (graph.vertices, graph.vertices)
    matrix = csr_matrix((crosses.astype(np.int64), (destination, source)), shape=shape)
    return matrix.T.tocsr() if direction is Direction.BACKWARD else matrix


def exact_sums(graph, assignment, features, direction=Direction.FORWARD):
    """float64 sums over remote neighbours; float32 may be off by (n + 1) · 2^-23 of magnitudes."""
    matrix = remote_edges(graph, assignment, direction)
    doubles = features.astype(np.float64)
    sizes = np.asarray(matrix.sum(axis=1)) + 1
    return matrix @ doubles, sizes * 2.0**-23 * (matrix @ np.abs(doubles))


def wrong(graph, assignment, features, sums, direction=Direction.FORWARD, *, slack=0.0):
    expected, bound = exact_sums(graph, assignment, features, direction)
    return int((np.abs(sums - expected) > bound + slack).sum())


def sizes_of_frames(rows, width, mtu):
    """How long the frames of a pair are: the closed form of docs/transports.md."""
    if mtu is None:
        return [188] * rows * -(-width // 32)
    payload = (mtu - 46) // 4 * 4
    whole, rest = divmod(4 * width * rows, payload)
    return [60 + payload] * whole + [60 + rest] * bool(rest)


def binned_on_hub(schedules, **options):
    backward = [schedule.backward for schedule in schedules]
    return on_hub([schedule.forward for schedule in schedules], backward=backward, **options)


def stream_all(transports, parts, calls, cut, *, background=True):
    """All calls of (features, direction), each fed as far as the one before it has come.

    `cut(worker, turn)` gives the bins of a call, int64[...] each; the bins of a call are waited
    for in the order in which they come, and then those of the next are fed.

    Returns float32[calls, V, F] sums.
    """

    def work(worker):
        transport = transports[worker]
        with transport.in_background() if background else nullcontext():
            sums = _in_bins(transport, parts[worker], calls, lambda turn: cut(worker, turn))
            transport.finish()
        transport.close()
        return sums

    return whole_sums([features for features, _ in calls], parts, together(work, len(transports)))


def _in_bins(transport, part, calls, cut):
    sums, before = [], None
    for turn, (features, direction) in enumerate(calls):
        rows, bins, stream = features[part], cut(turn), None
        for _, indices in in_order_of_arrival(before, bins, sums):
            stream = stream or transport.begin(features.shape[1], direction)
            stream.feed(indices, rows[indices])
        before = stream or transport.begin(features.shape[1], direction)
    for _ in in_order_of_arrival(before, [np.arange(len(part))], sums):
        pass
    return sums


def in_order_of_arrival(stream, bins, sums):
    """Yield the (number, bin)s whose sums are there, and put all of them into a new array."""
    if stream is None:
        yield from enumerate(bins)
        return
    whole = np.zeros_like(stream._rows)
    sums.append(whole)
    needs, left = [stream.needs(indices) for indices in bins], list(range(len(bins)))
    while left:
        number = left.pop(stream.wait_any([needs[each] for each in left]))
        whole[bins[number]] = stream.sums(bins[number])
        yield number, bins[number]
