# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Invented networks, and reports of their workers and switches."""

from switchgnn.controller.controls.banks import BankEvents, Passes
from switchgnn.controller.controls.outcome import Outcome
from switchgnn.controller.controls.session import SessionEntry
from switchgnn.controller.counters import Counters
from switchgnn.controller.metrics import Reading
from switchgnn.live.snapshot import CablePlace, Picture, SwitchPlace, WorkerPlace

STAR = Picture(
    transport="switch",
    ran_on="loopback",
    target="the embedded switch",
    workers=tuple(WorkerPlace(0, port) for port in (1, 2, 3, 4)),
    switches=(SwitchPlace("switch", 0),),
    cables=(),
    steps=40,
)
LEAF_SPINE = Picture(
    transport="switch",
    ran_on="Mininet",
    target="BMv2",
    workers=tuple(WorkerPlace(leaf, port) for leaf in (0, 1) for port in (1, 2)),
    switches=(SwitchPlace("leaf-0", 0), SwitchPlace("leaf-1", 0), SwitchPlace("spine-0", 1)),
    cables=(CablePlace("l0s0", 0, 2), CablePlace("l1s0", 1, 2)),
    steps=40,
    no_slots="not told by BMv2",
)


def values(blocks=0, *, up=0, down=0, waited=0.0, exchanging=1.0, recalls=0, lost=None):
    """The report of a worker."""
    told = {
        "rounds_total": float(blocks // 2),
        "blocks_total": float(blocks),
        "window_features": 16.0,
        "exchanging": exchanging,
        "barrier_seconds_total": waited,
        "link_bytes_total/up": float(up),
        "link_bytes_total/down": float(down),
        "sums_received_total": float(down // 188),
        "features_sent_total": float(up // 188),
        "features_fetched_total": 0.0,
        "recalls_total": float(recalls),
        "fetches_total": 0.0,
        "features_resent_total": 0.0,
    }
    if lost is not None:
        told |= {"injected_faults_total/up/lost": lost, "injected_faults_total/down/lost": 0.0}
    return told


def reading(frames=0, queue=(0, 0, 0), completed=0):
    """The reading of a switch."""
    return Reading(
        session=SessionEntry(3, 0xABCD, 0b1111, 0),
        ecn_threshold=20,
        counters=Counters(
            outcomes={each: frames * (each is Outcome.AGGREGATED) for each in Outcome},
            passes=Passes((0, frames)),
            banks=(BankEvents(completed, 0, 0, 0, 0),),
            unrouted=0,
            marked=0,
            releases=(0,) * 4,
            port_queue=tuple(queue),
        ),
        tables={},
        groups=0,
        seconds=0.0,
    )
