/* The workers: host/innetwork/sender.py, sums/receiver.py, responder.py and barrier.py. A worker is
 * one thread, so what it does about a packet happens at once. */

/* Of each worker in each pool, IN(worker, tag). */
#if POOLS == 1
byte place[WORKERS];           /* the tag that it is at: all begin in the opening */
byte closing = ALL;            /* where it has reported that, and waits */
#else
byte place[WORKERS * POOLS] = {0, 0, 0, 1, 1, 1};
byte closing = ALL | (ALL << 3);
#endif
byte accepted;                 /* where its features of this block are accepted */
/* Of each worker. */
byte have;             /* vertices whose sums are here */
byte fetching;         /* vertices whose features are being fetched */
byte doubt[VERTICES];  /* 1 + count of the last MISSING of each vertex; 0: none yet */
byte raw[VERTICES];    /* fetched features that are here, for each vertex */
byte stopped;          /* workers that have ended with an error */
#ifdef LEAF_SPINE
byte asked;            /* vertices whose sums have been recalled: a second time with Resend */
#endif

#define IN_ANY_POOL(set, worker) (HAS(set, worker) | HAS(set, (worker) + 3 * (POOLS - 1)))

#define IS_DONE_WITH(worker, tag) \
    (AT(worker, tag) > (tag) || (AT(worker, tag) == (tag) && HAS(closing, IN(worker, tag))) \
     || FIRST_PROCESS_WAS_DONE_WITH(worker, tag))
#define ALL_AT(tag) (AT(0, tag) == (tag) && AT(1, tag) == (tag) && AT(LAST_WORKER, tag) == (tag))
#define ALL_AT_END_OF(session) \
    (ALL_AT(FIRST_TAG((session) + 1) - POOLS) && ALL_AT(FIRST_TAG((session) + 1) - 1))
#define FINISHED (ALL_AT_END_OF(SESSIONS - 1) || GIVEN_UP)

#define IS_BETWEEN(number) (IS_OPENING(place[number]) && !HAS(closing, number))
#define IS_BETWEEN_ROUNDS(worker) \
    (IS_BETWEEN(worker) && IS_BETWEEN((worker) + 3 * (POOLS - 1)))
#define AWAITS_OPENING(number) (IS_OPENING(place[number]) && HAS(closing, number))
#define IS_OPENING_AWAITED(worker) \
    (AWAITS_OPENING(worker) || AWAITS_OPENING((worker) + 3 * (POOLS - 1)))

/* All openings of the round that begins with `opening` are answered. */
#ifdef ONE_OPENING_ENOUGH
#define IS_OPEN(worker, opening) \
    (AT(worker, 0) > (opening) || AT(worker, POOLS - 1) > (opening) + POOLS - 1)
#else
#define IS_OPEN(worker, opening) \
    (AT(worker, 0) > (opening) && AT(worker, POOLS - 1) > (opening) + POOLS - 1)
#endif
#if POOLS == 1
#define IS_REPORTABLE(worker, tag) true
#define IS_SENT(worker, tag) true
#define IS_ASKED_FOR(worker, tag) true
#define IS_IN_ORDER(worker, tag) true
#else
/* Whether the worker has begun the block that it is at in this pool, or sent it early. */
#define IS_ASKED_FOR(worker, tag) \
    (!IS_OPENING(tag) && IS_OPEN(worker, OPENING_OF(tag)) && IS_IN_ORDER(worker, tag))
#define IS_SENT(worker, tag) \
    (IS_ASKED_FOR(worker, tag) || (!IS_OPENING(tag) && IS_OPENING(PREVIOUS(tag)) \
                                   && SENT_EARLY(worker, PREVIOUS(tag))))
#ifdef ANY_ORDER
#define IS_IN_ORDER(worker, tag) true
#define IS_REPORTABLE(worker, tag) IS_OPEN(worker, OPENING_OF(tag))
#else
/* The block before, which is in the other pool, has begun; it is reported. */
#define IS_IN_ORDER(worker, tag) (IN_ROUND(tag) == POOLS || AT(worker, (tag) - 1) >= (tag) - 1)
#define IS_REPORTABLE(worker, tag) \
    (IS_OPEN(worker, OPENING_OF(tag)) \
     && (IN_ROUND(tag) == POOLS || IS_DONE_WITH(worker, (tag) - 1)))
#endif
#endif

inline report_if_done() {
    tag = place[worker + 3 * pool];
    if
    :: !IS_OPENING(tag) && HAS(accepted, IN(worker, tag)) && !HAS(closing, IN(worker, tag)) &&
            (AWAITS(worker, BLOCK_AT(tag)) & ~have) == 0 && IS_REPORTABLE(worker, tag) ->
        assert(!IS_VOID(tag));    /* nothing of a void round is used */
        closing = closing | BIT(IN(worker, tag));
        send_done(tag);
#ifdef NO_BARRIER_AWAITED
        if
        :: IS_OPENING(NEXT(tag))
        :: else ->
            tag = NEXT(tag); place[worker + 3 * pool] = tag;
            closing = closing & ~BIT(IN(worker, tag)); send_features(BLOCK_AT(tag))
        fi
#endif
#ifdef REPORTS_EARLY
    :: HAS(accepted, IN(worker, tag)) && SENT_EARLY(worker, tag) &&
            (AWAITS(worker, BLOCK_AT(tag + POOLS)) & ~have) == 0 ->
        place[worker + 3 * pool] = tag + POOLS;
        send_done(tag + POOLS)
#endif
    :: else
    fi
}

/* A report may allow that of the next block in another pool. */
inline report_what_is_done() {
    for (pool : 0 .. POOLS - 1) { report_if_done() };
#if POOLS > 1
    pool = 0; report_if_done()
#endif
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
    report_what_is_done()
}

/* After its block, and of a void round from when that is known. */
#define TOO_LATE_FOR(vertex) \
    (HAS(have, vertex) \
     || AT(HOME(vertex), TAG(BLOCK(vertex))) + DROPS(TAG(BLOCK(vertex))) > TAG(BLOCK(vertex)))

/* A sum of the next block that overtakes the ADVANCE is kept for it. One of a vertex
 * that is being fetched is as good as the fetched features, and takes their place: what
 * is here of them is forgotten. A worker with ONE_TOTAL for both adds it to them. */
inline sum_at_worker() {
    for (vertex : FIRST_IN(id) .. LAST_IN(id)) {
        worker = HOME(vertex);
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
}

/* An ACK promises that the switch has let the whole group through. A restart may
 * forget that: then the contribution is missed, and fetched. */
inline ack_at_worker() {
    block = 1 + id / 6; worker = (id % 6) / 2; number = 1 + id % 2;
    if
    :: SENDING_AT(worker, TAG(block)) == TAG(block) && !HAS(accepted, IN(worker, TAG(block))) ->
        if
        :: number < GROUP_SIZE(block) ->
            flying[FEATURE] = flying[FEATURE] | (SENDS(worker, block) << (4 * (block - 1)))
        :: else ->
            for (source : 0 .. 3) {
                assert(!HAS(SENDS(worker, block), source) ||
                       last_tag[SEEN_AT(source, TAG(block))] >= TAGGED_AS(block) || restarted)
            };
            accepted = accepted | BIT(IN(worker, TAG(block)));
            report_what_is_done()
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
    :: AT(worker, TAG(BLOCK(vertex))) == TAG(BLOCK(vertex)) && !HAS(have, vertex) && !HAS(fetching, vertex) ->
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
#define IS_FETCHED_AT(tag) (SENDING_AT(worker, tag) == (tag))
#else
#define IS_FETCHED_AT(tag) (AT(worker, tag) == (tag))
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

/* The first packet of a block, or the report of one in a void round. */
inline begin_block() {
    block = BLOCK_AT(tag);
    if
    :: block == 0 -> closing = closing | BIT(IN(worker, tag)); send_done(tag)
    :: block != 0 && DROPS(tag) ->
        closing = closing | BIT(IN(worker, tag)); drop_all(); send_done(tag)
    :: block != 0 && !DROPS(tag) && !(SENT_EARLY(worker, PREVIOUS(tag)) && IS_OPENING(PREVIOUS(tag))) ->
        send_features(block)
    :: else
    fi
}

/* Each block only when the one before has begun, in the other pool. */
inline begin_in_order() {
    if
    :: IS_IN_ORDER(worker, tag) ->
        begin_block();
#if POOLS > 1 && !defined ANY_ORDER
        tag++;
        if
        :: !IS_OPENING(tag) && AT(worker, tag) == tag -> begin_block()
        :: else
        fi
#endif
    :: else
    fi
}

/* Invariant 5: nobody goes on before all are done. */
inline advance_at_worker() {
    tag = id / 3; worker = id % 3;
    if
    :: AT(worker, tag) == tag && HAS(closing, IN(worker, tag)) ->
        assert(IS_DONE_WITH(0, tag) && IS_DONE_WITH(1, tag) &&
               IS_DONE_WITH(LAST_WORKER, tag));
        assert_only_process();
        if
        :: DROPS(tag) ->    /* nothing of a void round is used later */
            assert((have & AWAITS(worker, BLOCK_AT(tag))) == 0)
        :: else
        fi;
#ifdef ONE_OPENING_ENOUGH
        first = false;
#else
        first = IS_OPENING(tag);    /* it opens the round, if no other opening is awaited */
#endif
        AT(worker, tag) = NEXT(tag);
        closing = closing & ~BIT(IN(worker, tag));
        tag = NEXT(tag);
        if
        :: IS_BETWEEN_ROUNDS(worker) -> open_round(OPENING_OF(tag))
        :: !IS_BETWEEN_ROUNDS(worker) && !first && !IS_OPENING(tag) -> begin_in_order()
        :: !IS_BETWEEN_ROUNDS(worker) && first && !IS_OPENING_AWAITED(worker) ->
            for (pool : 0 .. POOLS - 1) {
                tag = place[worker + 3 * pool];
                if
                :: IS_OPENING(tag)
                :: else -> begin_block()
                fi
            }
        :: else
        fi;
        report_what_is_done()
    :: else
    fi
}

/* The tag of the worker's last `done` in a pool: of the barrier that it waits at, or has passed. */
#define ANSWERED(worker, tag) \
    (HAS_BEGUN(worker) && !HAS(closing, IN(worker, tag)) -> LAST_PASSED(AT(worker, tag)) \
                                                         : AT(worker, tag))

/* Nobody is refused but a worker of an earlier session and a second process. */
inline refusal_at_worker() {
    tag = id / 3; worker = id % 3;
    if
    :: ANSWERED(worker, tag) == tag ->
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
#if POOLS == 1
#define TAGS_OF_POOL(pool) ALL_TAGS(0)
#else
#define IS_OF_POOL(tag, pool) ((POOL(tag) == (pool)) << (3 * (tag)))
#define TAGS_OF_POOL(pool) \
    (IS_OF_POOL(0, pool) | IS_OF_POOL(1, pool) | IS_OF_POOL(2, pool) | IS_OF_POOL(3, pool) \
     | IS_OF_POOL(4, pool) | IS_OF_POOL(5, pool) | IS_OF_POOL(6, pool) | IS_OF_POOL(7, pool) \
     | IS_OF_POOL(8, pool) | IS_OF_POOL(9, pool))
#endif
#define EARLIER_IN_POOL(worker, tag) ((TAGS_OF_POOL(pool) << (worker)) & (BIT(3 * (tag)) - 1))

inline withdraw_what_is_too_late() {
#ifndef TOO_LATE_TRIED
    for (vertex : 0 .. VERTICES - 1) {
        if
        :: TOO_LATE_FOR(vertex) ->
            WITHDRAW(SUM, BIT(vertex) | (TOO_LATE_FOR((vertex) ^ 1) << BUNDLE_ID(BLOCK(vertex))));
            WITHDRAW(MISSING, ALL_OF(vertex)); WITHDRAW(RESENT, ALL_OF(vertex))
        :: !TOO_LATE_FOR(vertex) && HAS(fetching, vertex) ->
            WITHDRAW(MISSING, ALL_OF(vertex)); WITHDRAW(RESENT, raw[vertex] << (4 * vertex))
        :: else
        fi
    };
    for (worker : 0 .. LAST_WORKER) {
        for (pool : 0 .. POOLS - 1) {
            tag = place[worker + 3 * pool];
            WITHDRAW(ADVANCE, EARLIER_IN_POOL(worker, tag));
            WITHDRAW(REFUSAL, EARLIER_IN_POOL(worker, ANSWERED(worker, tag)))
        };
        for (block : 1 .. VERTICES / 2) {
            if
            :: SENDING_AT(worker, TAG(block)) > TAG(block) - HAS(accepted, IN(worker, TAG(block))) ->
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
    block = BLOCK_AT(tag + POOLS);
    if
    :: SENT_EARLY(worker, tag) && !HAS(accepted, IN(worker, tag)) ->
        SEND(FEATURE, FEATURE_ID(block, LAST_OF_GROUP(worker, block)))
#ifdef FETCHES_EARLY
    :: SENT_EARLY(worker, tag) && HAS(accepted, IN(worker, tag)) ->
        for (vertex : 0 .. VERTICES - 1) {
            if
            :: HAS(AWAITS(worker, block) & ~have, vertex) ->
                fetching = fetching | BIT(vertex);
                fetch_what_is_missing()
            :: else
            fi
        }
#endif
    :: else
    fi
}

/* Which `done` a worker repeats in a pool where it waits for no barrier: that of the last one that
 * it has passed there. */
#ifdef NO_DONE_AGAIN
#define REPEATS_LAST false
#endif
#ifdef ONLY_NEWEST_DONE_AGAIN
#define REPEATS_LAST \
    (LAST_PASSED(tag) >= LAST_PASSED(place[worker]) \
     && LAST_PASSED(tag) >= LAST_PASSED(place[worker + 3 * (POOLS - 1)]))
#endif
#ifdef ONLY_WHERE_SUMS_ARE_MISSING
#define REPEATS_LAST ((AWAITS(worker, BLOCK_AT(tag)) & ~have) != 0 && !IS_OPENING(tag))
#endif
#ifndef REPEATS_LAST
#define REPEATS_LAST true
#endif

inline timers_of_pool_fire() {
    tag = place[worker + 3 * pool]; block = BLOCK_AT(tag);
    if
    :: HAS(closing, IN(worker, tag)) -> send_done(tag); early_timers_fire()
    :: !HAS(closing, IN(worker, tag)) && !HAS(accepted, IN(worker, tag)) && IS_SENT(worker, tag) ->
        SEND(FEATURE, FEATURE_ID(block, LAST_OF_GROUP(worker, block)))
    :: else ->
        for (vertex : 0 .. VERTICES - 1) {
            if
            :: !IS_ASKED_FOR(worker, tag)
            :: IS_ASKED_FOR(worker, tag) && HAS(AWAITS(worker, block) & ~have & ~fetching, vertex) ->
                assert_recall_is_needed();
                SEND(RECALL, RECALL_ID(vertex)); NOTE_ASKED
            :: IS_ASKED_FOR(worker, tag) && HAS(AWAITS(worker, block) & ~have & fetching, vertex) ->
                fetch_what_is_missing()
            :: else
            fi
        };
        if
        :: REPEATS_LAST -> tag = LAST_PASSED(tag); send_done(tag)
        :: else
        fi
    fi
}

/* What each worker does when nothing comes any more. */
inline timers_fire() {
    for (worker : 0 .. LAST_WORKER) {
        if
        :: !HAS_BEGUN(worker)
        :: HAS_BEGUN(worker) && TO_BE_STARTED(worker) -> start_process()
        :: else ->
            for (pool : 0 .. POOLS - 1) { timers_of_pool_fire() }
        fi
    };
    count_firing()
}
