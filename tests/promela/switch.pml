/* SPDX-FileCopyrightText: 2026 The SwitchGNN authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A switch alone: every sum goes to a worker, and all report to it. */

byte done_tag, done_by;                         /* barrier.p4 */

inline completed() {
    send_sum()
}

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

inline done_at_switch() {
    tag = id / 3; worker = id % 3;
    if
    :: IS_AHEAD(0, tag) -> SEND(REFUSAL, id)
    :: IS_PASSED(0, tag, done_tag) && TELLS_NO_MORE(done_tag) -> SEND(REFUSAL, id)
    :: IS_PASSED(0, tag, done_tag) && !TELLS_NO_MORE(done_tag) -> advance(BIT(worker))
    :: else ->
        hear_magnitude();
        number = (done_tag == tag -> done_by : 0);
        done_tag = tag;
#ifdef BARRIER_COUNTS
        done_by = number + 1;
        if
        :: done_by == WORKERS -> advance(ALL); turn[0] = NEXT(tag)
        :: done_by > WORKERS -> advance(BIT(worker)); done_by = WORKERS
        :: else
        fi
#else
        done_by = number | BIT(worker);
        if
        :: done_by == ALL && number == ALL -> advance(BIT(worker)); turn[0] = NEXT(tag)
        :: done_by == ALL && number != ALL -> advance(ALL); turn[0] = NEXT(tag)
        :: else
        fi
#endif
    fi
}

/* All registers are 0 again, and what went around inside is gone. */
inline restart() {
    last_tag[0] = 0; last_tag[1] = 0; last_tag[2] = 0; last_tag[3] = 0;
    group_tag[0] = 0; group_tag[1] = 0; group_tag[2] = 0;
    group_count[0] = 0; group_count[1] = 0; group_count[2] = 0;
    slot_tag[0] = 0; slot_count[0] = 0; slot_value[0] = 0;
    slot_tag[1] = 0; slot_count[1] = 0; slot_value[1] = 0;
    done_tag = 0; done_by = 0;
    FORGET_TURN(0);
    FORGET_MAXIMUM;
    flying[LOOPING] = 0; late[LOOPING] = 0;
    fetched = 0; restarted = true
}

/* What was about to leave is gone as well. */
inline lose_queues() {
    flying[ACK] = 0; flying[SUM] = 0; flying[MISSING] = 0;
    flying[RESENT] = 0; flying[ADVANCE] = 0; flying[REFUSAL] = 0
}
