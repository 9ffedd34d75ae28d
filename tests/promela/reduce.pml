/* The all-reduce stream: workers, a switch that adds fragments in its slots, and the network of
 * network.pml. README.md says how to run it.
 *
 * Fragment `number` has slot `number % SLOTS`. A worker sends fragments in order, each once it has
 * the sum of the one WINDOW before it. Timers fire as in model.pml: for all workers together, and
 * only when nothing is flying. From the second firing without a sum on, a worker asks.
 *
 * The switch may have overwritten, or lost in a restart, a sum that only some workers have. A
 * worker without it asks, the switch passes the question to all, and those that have it answer.
 *
 * With SLOW=1 worker 0 sends each fragment at any later moment, amid timers of the others. With
 * WINDOW > SLOTS workers move on before the sum is here, with KEEPS < SLOTS they keep too few. */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef FRAGMENTS
#define FRAGMENTS 3
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef WINDOW
#define WINDOW SLOTS
#endif
#ifndef KEEPS
#define KEEPS SLOTS
#endif
#ifndef SLOW
#define SLOW 0
#endif
#ifndef MISTAKE
#define MISTAKE 0
#endif
#define ONE_BIT          1   /* SwitchML's version of one bit, instead of the number */
#define NO_SEEN          2   /* a repeated contribution is added again */
#define EQUAL_OVERWRITES 3   /* a contribution to the slot's own number replaces those before it */
#define STALE_ADDED      4   /* a contribution to an older number is added */
#define ANY_RESULT       5   /* any sum is taken for that of what is outstanding in its slot */
#define NO_ASKING        6   /* workers repeat, but do not ask */

/* kind        the identity of all is FRAME_ID: number, worker */
#define REDUCE   0   /* a contribution */
#define ASK      1   /* the same with Resend */
#define REDUCED  2   /* a sum, for this worker */
#define QUESTION 3   /* REDUCING with Resend, for this worker; without Resend it changes nothing */
#define ANSWER   4   /* REDUCED with Resend, from this worker to the switch */
#define KINDS 5
#define LOOPING KINDS
#define QUIET (!(flying[0] | flying[1] | flying[2] | flying[3] | flying[4]))

#include "network.pml"

#define ALL (BIT(WORKERS) - 1)
#define FRAME_ID(number, worker) (WORKERS * ((number) - 1) + (worker))
#define SEND_ALL(kind, to) flying[kind] = flying[kind] | ((to) << FRAME_ID(number, 0))

/* A sum lists what has been added: two bits for each fragment of each worker. */
#define CONTRIBUTION (1 << (2 * id))
#define WHOLE(number) ((WORKERS == 2 -> 5 : 21) << (2 * FRAME_ID(number, 0)))

hidden byte number, worker, slot, other;   /* used within a step only */

byte sent[WORKERS];   /* how many fragments each has sent */
byte have[WORKERS];   /* the sums that each has: number 1 is bit 0 */
byte through;         /* how many workers have all sums */
byte impatient;       /* workers without a sum since timers fired */

#define HAS_SUM(worker, number) HAS(have[worker], (number) - 1)
#define IS_OUTSTANDING(worker, number) (sent[worker] >= (number) && !HAS_SUM(worker, number))
#define MAY_SEND(worker) \
    (sent[worker] < FRAGMENTS \
     && (sent[worker] < WINDOW || HAS_SUM(worker, sent[worker] + 1 - WINDOW)))
#define KEEPS_SUM(worker, number) \
    (HAS_SUM(worker, number) && have[worker] >> ((number) - 1 + KEEPS) == 0)
#define FINISHED (through == WORKERS)
#define ASKS (MISTAKE != NO_ASKING && HAS(impatient, worker))

inline send_next() { sent[worker]++; SEND(REDUCE, FRAME_ID(sent[worker], worker)) }


inline send_what_it_may() {
    do
    :: MAY_SEND(worker) && !(SLOW && worker == 0) -> send_next()
    :: else -> break
    od
}

#define IS_SUM_OF(sum) (MISTAKE == ANY_RESULT -> sum % SLOTS == number % SLOTS : sum == number)
#define IS_USELESS(worker, number) (MISTAKE != ANY_RESULT && HAS_SUM(worker, number))

inline reduced_at_worker() {
    number = 1 + id / WORKERS; worker = id % WORKERS;
    for (other : 1 .. FRAGMENTS) {
        if
        :: IS_OUTSTANDING(worker, other) && IS_SUM_OF(other) ->
            assert(other == number);
            have[worker] = have[worker] | BIT(other - 1);
            impatient = impatient & ~BIT(worker);
            through = through + (have[worker] == BIT(FRAGMENTS) - 1);
            send_what_it_may();
            break
        :: else
        fi
    }
}

inline question_at_worker() {
    number = 1 + id / WORKERS; worker = id % WORKERS;
    if
    :: KEEPS_SUM(worker, number) -> SEND(ANSWER, id)
    :: else
    fi
}

/* Each worker repeats what is outstanding, and asks for the oldest. */
inline timers_fire() {
    for (worker : 0 .. WORKERS - 1) {
        other = REDUCE + ASKS;
        for (number : 1 .. FRAGMENTS) {
            if
            :: IS_OUTSTANDING(worker, number) ->
                SEND(other, FRAME_ID(number, worker)); other = REDUCE
            :: else
            fi
        }
    };
    impatient = ALL
}

/* The registers of the switch. A slot of SwitchML is two, and has no number. */
#if MISTAKE == ONE_BIT
#define REGISTERS (2 * SLOTS)
#else
#define REGISTERS SLOTS
#endif
byte tag[REGISTERS];   /* the newest number; with ONE_BIT the count of contributions */
byte by[REGISTERS];    /* workers that have contributed */
int value[REGISTERS];

#define IS_FRESH (MISTAKE == NO_SEEN || !HAS(by[slot], worker))
#define IS_STALE (MISTAKE != STALE_ADDED && tag[slot] > number)
#define ADDED_TO (MISTAKE == EQUAL_OVERWRITES -> 0 : value[slot])

/* A sum that leaves has exactly one contribution of each worker, to its own fragment. */
inline answer(is_complete, to, asks) {
    if
    :: is_complete -> assert(value[slot] == WHOLE(number)); SEND_ALL(REDUCED, to)
    :: !(is_complete) && asks -> SEND_ALL(QUESTION, ALL)
    :: else
    fi
}

inline reduce_at_switch(asks) {
    number = 1 + id / WORKERS; worker = id % WORKERS; slot = number % SLOTS;
#if MISTAKE == ONE_BIT
    other = slot + SLOTS * (1 - (number - 1) / SLOTS % 2);
    slot = slot + SLOTS * ((number - 1) / SLOTS % 2);
    if
    :: IS_FRESH ->
        by[slot] = by[slot] | BIT(worker); by[other] = by[other] & ~BIT(worker);
        tag[slot] = (tag[slot] + 1) % WORKERS;
        value[slot] = (tag[slot] == 1 -> 0 : value[slot]) + CONTRIBUTION;
        answer(tag[slot] == 0, ALL, false)
    :: else -> answer(tag[slot] == 0, BIT(worker), asks)
    fi
#else
    if
    :: tag[slot] < number -> tag[slot] = number; by[slot] = 0; value[slot] = 0
    :: else
    fi;
    if
    :: IS_STALE -> answer(false, 0, asks)
    :: !IS_STALE && IS_FRESH ->
        by[slot] = by[slot] | BIT(worker); value[slot] = ADDED_TO + CONTRIBUTION;
#ifdef LOOK_INSIDE
        assert((value[slot] & ~WHOLE(tag[slot])) == 0);
#endif
        answer(by[slot] == ALL, ALL, false)
    :: else -> answer(by[slot] == ALL, BIT(worker), asks)
    fi
#endif
}

inline contribution_at_switch() { reduce_at_switch(false) }
inline ask_at_switch() { reduce_at_switch(true) }
inline answer_at_switch() { number = 1 + id / WORKERS; SEND_ALL(REDUCED, ALL) }

/* Sums that their worker has: that changes nothing but the number of states. */
inline withdraw_what_is_too_late() {
    for (worker : 0 .. WORKERS - 1) {
        for (number : 1 .. FRAGMENTS) {
            WITHDRAW(REDUCED, IS_USELESS(worker, number) << FRAME_ID(number, worker))
        }
    }
}

active proctype Network() {
    byte id;
    bool arrives;
end:
    do
    :: ARRIVAL(REDUCE, INSIDE, contribution_at_switch)
    :: ARRIVAL(ASK, INSIDE, ask_at_switch)
    :: ARRIVAL(REDUCED, INSIDE, reduced_at_worker)
    :: ARRIVAL(QUESTION, INSIDE, question_at_worker)
    :: ARRIVAL(ANSWER, INSIDE, answer_at_switch)
    od
}

/* Ends when all workers have all sums: every other end is an error. */
active proctype Clock() {
    d_step { for (worker : 0 .. WORKERS - 1) { send_what_it_may() } };
    do
    :: d_step { QUIET && !FINISHED -> timers_fire(); printf("timers fire\n") }
    :: QUIET && FINISHED -> break
    od
}

#if SLOW
active proctype Slow() {
end:
    do
    :: d_step { MAY_SEND(0) -> worker = 0; send_next(); printf("the slow worker sends\n") }
    od
}
#endif

#if RESTARTS
/* Once, at any moment, with or without what waits in the switch's queues. */
active proctype Restart() {
end:
    atomic {
        d_step {
            true ->
            for (slot : 0 .. REGISTERS - 1) { tag[slot] = 0; by[slot] = 0; value[slot] = 0 }
        };
        if
        :: printf("the switch restarts\n")
        :: flying[REDUCED] = 0; flying[QUESTION] = 0; printf("the switch restarts, empty\n")
        fi
    }
}
#endif

/* As in model.pml; and the slow worker sends some day. */
ltl every_run_ends { ([]<> (QUIET && !MAY_SEND(0))) -> <> FINISHED }
