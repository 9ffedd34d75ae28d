/* SPDX-FileCopyrightText: 2026 The SwitchGNN authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The protocol of docs/protocol.md: one round of two blocks, three workers, a switch
 * and a network that loses, delays, repeats and reorders. With LEAF_SPINE that of docs/leaf-spine.md:
 * two leaves and a spine in place of the switch. README.md says how to run it.
 *
 * Timers fire for all workers together, and only when no packet is flying: a timer that
 * fires too early is the same as a packet that is late, and those are tried. So without
 * faults nothing is ever repeated in vain, and a run that goes in circles is one in
 * which repeating helps nobody: it takes no fairness between workers to find it. */

#ifdef LEAF_SPINE
#include "leaf_spine_plan.pml"
#else
#include "plan.pml"
#endif
#include "network.pml"
#include "worker.pml"
#include "slots.pml"
#ifdef LEAF_SPINE
#include "leaf.pml"
#include "spine.pml"
#else
#include "switch.pml"
#endif

#ifndef RESTARTS
#define RESTARTS 0
#endif

/* Used within a step only, so they are no part of the state. */
hidden byte block, source, slot, vertex, worker, number, accepted_count, complete, first;
#ifdef LEAF_SPINE
hidden byte leaf, part, carried;
hidden int content;
#endif

#define ARRIVAL(kind, what_happens) \
    atomic { \
        UNDER_WAY(kind) -> \
        pick(kind); \
        if \
        :: arrives -> \
            d_step { \
                printf(#kind); printf(" %d arrives\n", id); \
                what_happens(); withdraw_what_is_too_late(); arrives = false \
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
#ifdef LEAF_SPINE
    :: ARRIVAL(PART, part_at_spine)
    :: ARRIVAL(UP_DONE, done_at_spine)
    :: ARRIVAL(DOWN_ADVANCE, advance_at_leaf)
    :: ARRIVAL(DOWN_RECALL, recall_at_leaf)
    :: ARRIVAL(DOWN_MISSING, missing_at_leaf)
#endif
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

#define RESTART(who, forgets, loses) \
    :: d_step { true -> forgets; printf(who); printf(" restarts\n") } \
    :: d_step { true -> forgets; loses; printf(who); printf(" restarts, empty\n") }

#if RESTARTS
/* Once, at any moment, with or without what waits in the switch's queues. */
active proctype Restart() {
end:
    if
#ifdef LEAF_SPINE
#ifndef SPINE_ONLY
    RESTART("leaf 0", restart_leaf_0(), lose_queues_of_leaf(0))
    RESTART("leaf 1", restart_leaf_1(), lose_queues_of_leaf(1))
#endif
#ifndef LEAVES_ONLY
    RESTART("the spine", restart_spine(), lose_queues_of_spine())
#endif
#else
    RESTART("the switch", restart(), lose_queues())
#endif
    fi
}
#endif

/* Every run in which each packet arrives or is lost before long, so that it is quiet
 * again and again, comes to its end. Without that condition the network may hold one
 * packet back forever while others go to and fro. */
ltl every_run_ends { ([]<> QUIET) -> <> FINISHED }
