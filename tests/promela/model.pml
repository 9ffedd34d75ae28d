/* The protocol of docs/protocol.md: one round of two blocks, or more rounds of other plans, three
 * workers, a switch and a network that loses, delays, repeats and reorders. With LEAF_SPINE
 * that of docs/leaf-spine.md: two leaves and a spine in place of the switch. README.md says how
 * to run it.
 *
 * Timers fire for all workers together, and only when no packet is flying: a timer that
 * fires too early is the same as a packet that is late, and those are tried. So without
 * faults nothing is ever repeated in vain, and a run that goes in circles is one in
 * which repeating helps nobody: it takes no fairness between workers to find it. */

#include "rounds.pml"
#ifdef LEAF_SPINE
#include "leaf_spine_plan.pml"
#else
#include "plan.pml"
#endif
#include "network.pml"
#include "early.pml"
#include "processes.pml"
#include "bundle.pml"
#include "worker.pml"
#include "turn.pml"
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
hidden byte tag, block, source, slot, vertex, worker, pool, seen, group, number;
hidden byte accepted_count, complete, first;
hidden short before;   /* -1: before the first tag */
hidden byte foreign;   /* 1: the packet is of another session than who gets it */
#ifdef LEAF_SPINE
hidden byte leaf, part, carried;
hidden int content;
#endif

active proctype Network() {
    byte id;
    bool arrives;
end:
    do
    :: ARRIVAL(FEATURE, AT_SWITCH, feature_at_switch)
    :: ARRIVAL(LOOPING, INSIDE, feature_at_second_slot)
    :: ARRIVAL(ACK, AT_WORKER, ack_at_worker)
    :: ARRIVAL(SUM, AT_WORKER, sum_at_worker)
    :: ARRIVAL(RECALL, AT_SWITCH, recall_at_switch)
    :: ARRIVAL(MISSING, AT_WORKER, missing_at_worker)
    :: ARRIVAL(FETCH, AT_SWITCH, fetch_at_switch)
    :: ARRIVAL(RESENT, AT_WORKER, resent_at_worker)
#ifdef SECOND_PROCESS
    :: ARRIVAL(DONE, AT_SWITCH, done_of_first)
    :: ARRIVAL(SECOND_DONE, AT_SWITCH, done_of_second)
#else
    :: ARRIVAL(DONE, AT_SWITCH, done_at_switch)
#endif
    :: ARRIVAL(ADVANCE, AT_WORKER, advance_at_worker)
    :: ARRIVAL(REFUSAL, AT_WORKER, refusal_at_worker)
#ifdef LEAF_SPINE
    :: ARRIVAL(PART, INSIDE, part_at_spine)
    :: ARRIVAL(UP_DONE, INSIDE, done_at_spine)
    :: ARRIVAL(DOWN_ADVANCE, INSIDE, advance_at_leaf)
    :: ARRIVAL(DOWN_RECALL, INSIDE, recall_at_leaf)
    :: ARRIVAL(DOWN_MISSING, INSIDE, missing_at_leaf)
    :: ARRIVAL(DOWN_REFUSAL, INSIDE, refusal_at_leaf)
#endif
    od
}

inline start_workers() {
    d_step {
        flying[DONE] = ALL_BEGUN | (ALL_BEGUN << (3 * (POOLS - 1)));
        for (worker : 0 .. LAST_WORKER) {
            for (pool : 0 .. POOLS - 1) {
                if
                :: OPENS_EARLY && HAS_BEGUN(worker) -> send_early_features(pool)
                :: else
                fi
            }
        }
    }
}

/* Ends when all workers are through the last round: every other end is an error. */
active proctype Clock() {
#ifdef EARLY
    atomic {
        choose_unfit();
#ifdef SLOW
        choose_slow();
#endif
        start_workers()
    }
#else
    start_workers();
#endif
    do
    :: d_step {
            QUIET && !FINISHED && !INSTALL_DUE && !BEGIN_DUE ->
            timers_fire(); printf("timers fire\n")
        }
    :: QUIET && FINISHED -> break
    od
}

#ifdef SLOW
active proctype Slow() {
end:
    d_step {
        slow != NOBODY -> begin(); withdraw_what_is_too_late(); printf("the slow worker begins\n")
    }
}
#endif

#ifdef BROKEN_WORKER
#define IS_COLLECTING_EARLY (KNOWS(0) && IS_EARLY(turn[0]))
#define SENT_OUT_OF_TURN(source) \
    :: d_step { \
        IS_COLLECTING_EARLY -> \
        SEND(FEATURE, FEATURE_ID(BLOCK_AT(NEXT(turn[0])) + POOLS, source)); \
        printf("source %d is sent out of turn\n", source) \
    }

/* Sends a feature of the second next block during an opening. */
active proctype Broken() {
end:
    if
    SENT_OUT_OF_TURN(0)
    SENT_OUT_OF_TURN(1)
    SENT_OUT_OF_TURN(2)
    fi
}
#endif

#ifdef NEW_SESSION
/* At any moment. */
active proctype Install() {
end:
    d_step { true -> session = 1; withdraw_what_is_too_late(); printf("a new session\n") }
}

#define STARTED(number) \
    :: d_step { \
        IS_OLD(number) -> \
        worker = number; start_process(); withdraw_what_is_too_late(); \
        printf("worker %d starts anew\n", worker) \
    }

active proctype Starts() {
end:
    do
    STARTED(0)
    STARTED(1)
#ifndef TWO_WORKERS
    STARTED(2)
#endif
    od
}
#endif

#ifdef SECOND_PROCESS
#define STARTED_AGAIN(number) \
    :: d_step { \
        !FINISHED && IS_CHOSEN -> \
        worker = number; start_second_process(); withdraw_what_is_too_late(); \
        printf("worker %d starts again\n", worker) \
    }

active proctype Starts() {
end:
    if
    STARTED_AGAIN(0)
    STARTED_AGAIN(1)
#ifndef TWO_WORKERS
    STARTED_AGAIN(2)
#endif
    fi
}
#endif

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
