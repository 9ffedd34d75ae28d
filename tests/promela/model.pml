/* SPDX-FileCopyrightText: 2026 The SwitchGNN authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The protocol of docs/protocol.md: one round of two blocks, three workers, a switch
 * and a network that loses, delays, repeats and reorders. README.md says how to run it.
 *
 * Timers fire for all workers together, and only when no packet is flying: a timer that
 * fires too early is the same as a packet that is late, and those are tried. So without
 * faults nothing is ever repeated in vain, and a run that goes in circles is one in
 * which repeating helps nobody: it takes no fairness between workers to find it. */

#include "plan.pml"
#include "network.pml"
#include "worker.pml"
#include "switch.pml"

#ifndef RESTARTS
#define RESTARTS 0
#endif

/* Used within a step only, so they are no part of the state. */
hidden byte block, source, slot, vertex, worker, number, accepted_count, complete, first;

#define ARRIVAL(kind, what_happens) \
    atomic { \
        UNDER_WAY(kind) -> \
        pick(kind); \
        if \
        :: arrives -> \
            d_step { \
                printf(#kind); printf(" %d arrives\n", id); \
                what_happens(); arrives = false \
            } \
        :: else -> printf(#kind); printf(" %d is lost or late\n", id) \
        fi; \
        id = 0 \
    }

active proctype Network() {
    byte id;
    bool arrives;
end:
    do
    :: ARRIVAL(FEATURE, feature_at_switch)
    :: ARRIVAL(LOOPING, feature_at_second_slot)
    :: ARRIVAL(ACK, ack_at_worker)
    :: ARRIVAL(SUM, sum_at_worker)
    :: ARRIVAL(RECALL, recall_at_switch)
    :: ARRIVAL(MISSING, missing_at_worker)
    :: ARRIVAL(FETCH, fetch_at_switch)
    :: ARRIVAL(RESENT, resent_at_worker)
    :: ARRIVAL(DONE, done_at_switch)
    :: ARRIVAL(ADVANCE, advance_at_worker)
    od
}

/* Ends when all workers are through both blocks: every other end is an error. */
active proctype Clock() {
    flying[DONE] = ALL;
    do
    :: d_step { QUIET && !FINISHED -> timers_fire(); printf("timers fire\n") }
    :: QUIET && FINISHED -> break
    od
}

#if RESTARTS
/* Once, at any moment, with or without what waits in the switch's queues. */
active proctype Restart() {
end:
    if
    :: d_step { true -> restart(); printf("the switch restarts\n") }
    :: d_step { true -> restart(); lose_queues(); printf("the switch restarts, empty\n") }
    fi
}
#endif

/* Every run in which each packet arrives or is lost before long, so that it is quiet
 * again and again, comes to its end. Without that condition the network may hold one
 * packet back forever while others go to and fro. */
ltl every_run_ends { ([]<> QUIET) -> <> FINISHED }
