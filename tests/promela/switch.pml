/* A switch alone: every sum goes to a worker, and all report to it. */

byte done_tag[POOLS], done_by[POOLS];   /* barrier.p4 */

/* That of all pools: the maximum is one. */
#if POOLS == 1
#define NEWEST done_tag[0]
#else
#define NEWEST (OPENING_OF(done_tag[0]) > OPENING_OF(done_tag[1]) -> done_tag[0] : done_tag[1])
#endif

#ifndef BUNDLES
inline completed() {
    send_sum()
}
#endif

inline not_complete() {
    SEND(MISSING, PAIR_ID(vertex, number))
}

/* Nobody is told to leave the next opening: there the model ends. */
inline advance(workers) {
    assert_maximum();
    if
    :: !IS_LAST(tag) -> flying[ADVANCE] = flying[ADVANCE] | ((workers) << (3 * tag))
    :: else
    fi
}

#ifdef PASSED_OPENING_HEEDED
#define HEEDED_AFTERWARDS true
#else
#define HEEDED_AFTERWARDS false
#endif

inline done_at_switch() {
    tag = id / 3; worker = id % 3; pool = BARRIER_AT(tag);
    if
    :: IS_AHEAD(pool, tag) -> SEND(REFUSAL, id)
    :: IS_PASSED(pool, tag, done_tag[pool]) && TELLS_NO_MORE(NEWEST) ->
        if
        :: AT(worker, tag) > tag && !HEEDED_AFTERWARDS    /* it is repeated, in a pool without blocks */
        :: else -> SEND(REFUSAL, id)
        fi
    :: IS_PASSED(pool, tag, done_tag[pool]) && !TELLS_NO_MORE(NEWEST) -> advance(BIT(worker))
    :: else ->
        hear_magnitude();
        number = (done_tag[pool] == tag -> done_by[pool] : 0);
        done_tag[pool] = tag;
#ifdef BARRIER_COUNTS
        done_by[pool] = number + 1;
        if
        :: done_by[pool] == WORKERS -> advance(ALL); turn[pool] = NEXT(tag)
        :: done_by[pool] > WORKERS -> advance(BIT(worker)); done_by[pool] = WORKERS
        :: else
        fi
#else
        done_by[pool] = number | BIT(worker);
        if
        :: done_by[pool] == ALL && number == ALL -> advance(BIT(worker)); turn[pool] = NEXT(tag)
        :: done_by[pool] == ALL && number != ALL -> advance(ALL); turn[pool] = NEXT(tag)
        :: else
        fi
#endif
    fi
}

/* All registers are 0 again, and what went around inside is gone. */
inline restart() {
    for (seen : 0 .. 4 * POOLS - 1) { last_tag[seen] = 0 };
    for (group : 0 .. WORKERS * POOLS - 1) { group_tag[group] = 0; group_count[group] = 0 };
    for (slot : 0 .. SLOTS - 1) { slot_tag[slot] = 0; slot_count[slot] = 0; slot_value[slot] = 0 };
    for (pool : 0 .. POOLS - 1) { done_tag[pool] = 0; done_by[pool] = 0; FORGET_TURN(pool) };
    for (pool : 0 .. POOLS - 1) { forget_shelf() };
    FORGET_MAXIMUM;
    flying[LOOPING] = 0; late[LOOPING] = 0;
#if POOLS > 1 && !defined DONES_SURVIVE
    flying[DONE] = 0;
#endif
    fetched = 0; restarted = true
}

/* What was about to leave is gone as well. */
inline lose_queues() {
    flying[ACK] = 0; flying[SUM] = 0; flying[MISSING] = 0;
    flying[RESENT] = 0; flying[ADVANCE] = 0; flying[REFUSAL] = 0
}
