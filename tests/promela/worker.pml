/* SPDX-FileCopyrightText: 2026 The SwitchGNN authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The workers: host/innetwork/sender.py, sums/receiver.py, responder.py and barrier.py. A worker is
 * one thread, so what it does about a packet happens at once. */

byte place[WORKERS];   /* the tag that each worker is at */
byte closing = ALL;    /* workers that are done with their tag; all begin in the opening */
byte accepted;         /* workers whose features of this block are accepted */
byte have;             /* vertices whose sums are here */
byte fetching;         /* vertices whose features are being fetched */
byte doubt[VERTICES];  /* 1 + count of the last MISSING of each vertex; 0: none yet */
byte raw[VERTICES];    /* fetched features that are here, for each vertex */
byte stopped;          /* workers that have ended with an error */
#ifdef LEAF_SPINE
byte asked;            /* vertices whose sums have been recalled: a second time with Resend */
#endif

#define IS_DONE_WITH(worker, tag) \
    (place[worker] > (tag) || (place[worker] == (tag) && HAS(closing, worker)) \
     || FIRST_PROCESS_WAS_DONE_WITH(worker, tag))
#define ALL_AT(tag) (place[0] == (tag) && place[1] == (tag) && place[2] == (tag))
#define FINISHED (ALL_AT(FIRST_TAG(SESSIONS) - 1) || GIVEN_UP)

inline close_if_done() {
    if
    :: HAS(accepted, worker) && !HAS(closing, worker) &&
            (AWAITS(worker, BLOCK_AT(place[worker])) & ~have) == 0 ->
        assert(!IS_VOID(place[worker]));    /* nothing of a void round is used */
        closing = closing | BIT(worker);
        send_done(place[worker])
#ifdef REPORTS_EARLY
    :: HAS(accepted, worker) && SENT_EARLY(worker, place[worker]) &&
            (AWAITS(worker, BLOCK_AT(place[worker] + 1)) & ~have) == 0 ->
        place[worker]++;
        send_done(place[worker])
#endif
    :: else
    fi
}

#ifdef LEAF_SPINE
#define RECALL_ID(vertex) ((vertex) + 4 * HAS(asked, vertex))
#define NOTE_ASKED asked = asked | BIT(vertex)
#define FORGET_ASKED asked = asked & ~BIT(vertex)
#else
#define RECALL_ID(vertex) (vertex)
#define NOTE_ASKED skip
#define FORGET_ASKED skip
#endif

inline use_sum() {
    have = have | BIT(vertex);
    fetching = fetching & ~BIT(vertex);
    doubt[vertex] = 0; raw[vertex] = 0;
    FORGET_ASKED;
    close_if_done()
}

/* After its block, and of a void round from when that is known. */
#define TOO_LATE_FOR(vertex) \
    (HAS(have, vertex) || place[HOME(vertex)] + DROPS(TAG(BLOCK(vertex))) > TAG(BLOCK(vertex)))

/* A sum of the next block that overtakes the ADVANCE is kept for it. One of a vertex
 * that is being fetched is as good as the fetched features, and takes their place: what
 * is here of them is forgotten. A worker with ONE_TOTAL for both adds it to them. */
inline sum_at_worker() {
    vertex = id; worker = HOME(vertex);
    if
    :: !TOO_LATE_FOR(vertex) ->
        assert(!foreign);    /* of the worker's own session */
#ifdef ONE_TOTAL
        assert(raw[vertex] == 0);    /* invariant 2: not a mixture */
#endif
        use_sum()
    :: else
    fi
}

/* An ACK promises that the switch has let the whole group through. A restart may
 * forget that: then the contribution is missed, and fetched. */
inline ack_at_worker() {
    block = 1 + id / 6; worker = (id % 6) / 2; number = 1 + id % 2;
    if
    :: SENDING_AT(worker) == TAG(block) && !HAS(accepted, worker) ->
        if
        :: number < GROUP_SIZE(block) ->
            flying[FEATURE] = flying[FEATURE] | (SENDS(worker, block) << (4 * (block - 1)))
        :: else ->
            for (source : 0 .. 3) {
                assert(!HAS(SENDS(worker, block), source) ||
                       last_tag[source] >= TAGGED_AS(block) || restarted)
            };
            accepted = accepted | BIT(worker);
            close_if_done()
        fi
    :: else
    fi
}

inline fetch_what_is_missing() {
    flying[FETCH] = flying[FETCH] | ((SOURCES(vertex) & ~raw[vertex]) << (4 * vertex))
}

/* Fetches when the slot stood still between two answers. */
inline missing_at_worker() {
    vertex = id / 4; worker = HOME(vertex);
    if
    :: place[worker] == TAG(BLOCK(vertex)) && !HAS(have, vertex) && !HAS(fetching, vertex) ->
        if
        :: doubt[vertex] == 1 + id % 4 ->
            fetching = fetching | BIT(vertex);
            fetch_what_is_missing()
        :: else -> doubt[vertex] = 1 + id % 4
        fi
    :: else
    fi
}

#ifdef FETCHES_EARLY
#define IS_FETCHED_AT(tag) (SENDING_AT(worker) == (tag))
#else
#define IS_FETCHED_AT(tag) (place[worker] == (tag))
#endif

inline resent_at_worker() {
    vertex = id / 4; worker = HOME(vertex);
    if
    :: IS_FETCHED_AT(TAG(BLOCK(vertex))) && HAS(fetching, vertex) ->
        assert(!foreign);
        raw[vertex] = raw[vertex] | BIT(id % 4);
        if
        :: raw[vertex] == SOURCES(vertex) -> use_sum()
        :: else
        fi
    :: else
    fi
}

/* Invariant 5: nobody goes on before all are done. */
inline advance_at_worker() {
    tag = id / 3; worker = id % 3;
    if
    :: place[worker] == tag && HAS(closing, worker) ->
        assert(IS_DONE_WITH(0, tag) && IS_DONE_WITH(1, tag) && IS_DONE_WITH(2, tag));
        assert_only_process();
        if
        :: DROPS(tag) ->    /* nothing of a void round is used later */
            assert((have & AWAITS(worker, BLOCK_AT(tag))) == 0)
        :: else
        fi;
        number = SENT_EARLY(worker, tag);
        tag = NEXT(tag); block = BLOCK_AT(tag);
        place[worker] = tag;
        if
        :: block == 0 -> send_done(tag); send_early_features(tag)
        :: block != 0 && DROPS(tag) -> drop_all(); send_done(tag)
        :: else ->
            closing = closing & ~BIT(worker);
            if
            :: number
            :: else -> send_features(block)
            fi;
            close_if_done()
        fi
    :: else
    fi
}

/* The tag of the worker's last `done`: of the barrier that it waits at, or has passed. */
#define ANSWERED(worker) (place[worker] - (HAS_BEGUN(worker) && !HAS(closing, worker)))

/* Nobody is refused but a worker of an earlier session and a second process. */
inline refusal_at_worker() {
    tag = id / 3; worker = id % 3;
    if
    :: ANSWERED(worker) == tag ->
        assert(SESSION_OF(tag) < session || HAS(second, worker));
        stopped = stopped | BIT(worker)
    :: else
    fi
}

/* What no worker will heed any more, whenever it arrives, is not tried: an ADVANCE of a tag
 * that is behind its worker, the sum of a vertex that has one, and so on. That changes
 * nothing but the number of states. */
#define ALL_OF(vertex) (15 << (4 * (vertex)))
#define ALL_REPORTS(leaf) (349525 << (leaf))

inline withdraw_what_is_too_late() {
#ifndef TOO_LATE_TRIED
    for (vertex : 0 .. VERTICES - 1) {
        if
        :: TOO_LATE_FOR(vertex) ->
            WITHDRAW(SUM, BIT(vertex));
            WITHDRAW(MISSING, ALL_OF(vertex)); WITHDRAW(RESENT, ALL_OF(vertex))
        :: !TOO_LATE_FOR(vertex) && HAS(fetching, vertex) ->
            WITHDRAW(MISSING, ALL_OF(vertex)); WITHDRAW(RESENT, raw[vertex] << (4 * vertex))
        :: else
        fi
    };
    for (worker : 0 .. 2) {
        WITHDRAW(ADVANCE, ALL_TAGS(worker) & (BIT(3 * place[worker]) - 1));
        WITHDRAW(REFUSAL, ALL_TAGS(worker) & (BIT(3 * ANSWERED(worker)) - 1));
        for (block : 1 .. VERTICES / 2) {
            if
            :: SENDING_AT(worker) > TAG(block) - HAS(accepted, worker) ->
                WITHDRAW(ACK, 3 << (2 * worker + 6 * (block - 1)))
            :: else
            fi
        }
    };
#ifdef NEW_SESSION
    if
    :: session > 0 ->
        WITHDRAW(FEATURE, BIT(NUMBERS(FEATURE)) - 1);
        WITHDRAW(RECALL, BIT(NUMBERS(RECALL)) - 1);
        WITHDRAW(FETCH, BIT(NUMBERS(FETCH)) - 1)
    :: else
    fi;
#endif
#ifdef LEAF_SPINE
    /* A leaf passes it to all its workers: it is too late when the last one is ahead. */
    tag = (place[0] < place[1] -> place[0] : place[1]);
    WITHDRAW(DOWN_ADVANCE, ALL_REPORTS(0) & (BIT(2 * tag) - 1));
    WITHDRAW(DOWN_ADVANCE, ALL_REPORTS(1) & (BIT(2 * place[2]) - 1));
    WITHDRAW(DOWN_REFUSAL, ALL_REPORTS(0) & (BIT(2 * tag) - 1));
    WITHDRAW(DOWN_REFUSAL, ALL_REPORTS(1) & (BIT(2 * place[2]) - 1))
#endif
#else
    skip
#endif
}

/* In an opening, of the features that were sent early. It asks for no sum. */
inline early_timers_fire() {
    if
    :: SENT_EARLY(worker, tag) && !HAS(accepted, worker) ->
        SEND(FEATURE, FEATURE_ID(BLOCK_AT(tag + 1), LAST_OF_GROUP(worker, BLOCK_AT(tag + 1))))
#ifdef FETCHES_EARLY
    :: SENT_EARLY(worker, tag) && HAS(accepted, worker) ->
        for (vertex : 0 .. VERTICES - 1) {
            if
            :: HAS(AWAITS(worker, BLOCK_AT(tag + 1)) & ~have, vertex) ->
                fetching = fetching | BIT(vertex);
                fetch_what_is_missing()
            :: else
            fi
        }
#endif
    :: else
    fi
}

/* What each worker does when nothing comes any more. */
inline timers_fire() {
    for (worker : 0 .. 2) {
        tag = place[worker]; block = BLOCK_AT(tag);
        if
        :: !HAS_BEGUN(worker)
        :: HAS_BEGUN(worker) && TO_BE_STARTED(worker) -> start_process()
        :: !TO_BE_STARTED(worker) && HAS(closing, worker) -> send_done(tag); early_timers_fire()
        :: HAS_BEGUN(worker) && !TO_BE_STARTED(worker) && !HAS(closing, worker) &&
                !HAS(accepted, worker) ->
            SEND(FEATURE, FEATURE_ID(block, LAST_OF_GROUP(worker, block)))
        :: else ->
            for (vertex : 0 .. VERTICES - 1) {
                if
                :: HAS(AWAITS(worker, block) & ~have & ~fetching, vertex) ->
                    SEND(RECALL, RECALL_ID(vertex)); NOTE_ASKED
                :: HAS(AWAITS(worker, block) & ~have & fetching, vertex) -> fetch_what_is_missing()
                :: else
                fi
            };
#ifndef NO_DONE_AGAIN
            send_done(tag - 1)
#endif
        fi
    };
    count_firing()
}
