# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that feed a round while the one before it is still coming in."""

import numpy as np

from switchgnn.host.direct import DirectTransport
from switchgnn.host.wire.faults import Faults, FaultyLink
from tests.host.direct.crew import PATIENT, Hub, together
from tests.support.speed import pace_here


def binned_on_hub(schedules, *, hub=None, faults="", pace=PATIENT, **options):
    """A transport for each BinnedSchedule, on a hub of their own."""
    hub = hub or Hub(len(schedules))
    made = []
    for worker, schedule in enumerate(schedules):
        link = hub.link(worker)
        if faults:
            link = FaultyLink(link, Faults.parse(faults), worker)
        both = {"pace": pace_here(pace), "backward": schedule.backward} | options
        made.append(DirectTransport(schedule.forward, link, hub.stations, **both))
    return made


def stream_all(transports, parts, calls, cut, *, background=True):
    """All calls of (features, direction), each fed as far as the one before it has come.

    `cut(worker, turn)` gives the bins of a call, int64[...] each; the bins of a call are waited
    for in the order in which they come, and then those of the next are fed.

    Returns float32[calls, V, F] sums.
    """

    def work(worker):
        sums = _in_bins(transports[worker], parts[worker], calls, lambda turn: cut(worker, turn))
        transports[worker].finish()
        return sums

    def run(worker):
        if not background:
            sums = work(worker)
        else:
            with transports[worker].in_background():
                sums = work(worker)
        transports[worker].close()
        return sums

    per_worker = together(run, len(transports))
    results = []
    for turn, (features, _) in enumerate(calls):
        whole = np.zeros_like(features)
        for part, sums in zip(parts, per_worker, strict=True):
            whole[part] = sums[turn]
        results.append(whole)
    return results


def _in_bins(transport, part, calls, cut):
    sums, before = [], None
    for turn, (features, direction) in enumerate(calls):
        rows, bins, stream = features[part], cut(turn), None
        for _, places in in_order_of_arrival(before, bins, sums):
            stream = stream or transport.begin(features.shape[1], direction)
            stream.feed(places, rows[places])
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
    needs, left = [stream.needs(places) for places in bins], list(range(len(bins)))
    while left:
        number = left.pop(stream.wait_any([needs[each] for each in left]))
        whole[bins[number]] = stream.sums(bins[number])
        yield number, bins[number]
