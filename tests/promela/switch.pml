/* SPDX-FileCopyrightText: 2026 The SwitchGNN authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The switch: the registers of p4src/, and what each kind of packet does to them. */

#define RELEASED 3   /* counts add up to this and no further; no vertex expects it */

byte last_tag[4];                               /* seen.p4, of each source */
byte group_tag[WORKERS], group_count[WORKERS];  /* accepted.p4 */
byte slot_tag[2], slot_count[2];                /* aggregator.p4 */
int slot_value[2];
byte done_tag, done_by;                         /* barrier.p4 */

/* Not in the switch, only for assertions. */
byte fetched;     /* vertices for which a fetch has passed since the last restart */
bool restarted;

/* Mistakes that could be in a switch, each turned on by its name. */
#ifdef NO_LAST_TAG
#define FIRST_TIME true
#else
#define FIRST_TIME (last_tag[source] < block)
#endif
#ifdef NO_SLOT_TAG
#define OVERWRITES false
#define ADDS true
#else
#define OVERWRITES (slot_tag[slot] < block)
#ifdef STALE_ADDED
#define ADDS (slot_tag[slot] == block || count == 1)
#else
#define ADDS (slot_tag[slot] == block)
#endif
#endif

/* One visit to a slot: of a contribution, or of a recall or fetch, which bring nothing
 * but a count of 0 or RELEASED. Sets `number`, the contributions in the slot, and
 * `complete`. */
inline touch(count, payload) {
    if
    :: OVERWRITES -> slot_tag[slot] = block; slot_count[slot] = 0; slot_value[slot] = 0
    :: else
    fi;
    if
    :: ADDS ->
        slot_count[slot] =
            (slot_count[slot] + (count) > RELEASED -> RELEASED : slot_count[slot] + (count));
        slot_value[slot] = slot_value[slot] + (payload);
        number = slot_count[slot]
    :: else -> number = (count)
    fi;
    complete = (ADDS && number == EXPECTED(VERTEX(block, slot)));
#ifdef LOOK_INSIDE
    /* Invariants 1, 3 and 4: at any time only sources of the slot's own vertex under
     * its tag, each at most once. */
    assert((slot_value[slot] & ~EXACT(VERTEX(slot_tag[slot], slot))) == 0)
#endif
}

/* Invariants 1, 3 and 4 as the workers see them, and what a release promises. */
inline send_sum() {
    assert(slot_value[slot] == EXACT(VERTEX(block, slot)));
#ifndef SUM_AFTER_FETCH_ALLOWED
    assert(!HAS(fetched, VERTEX(block, slot)));
#endif
    SEND(SUM, VERTEX(block, slot))
}

inline contribute() {
    touch(1, PAYLOAD(block, source));
    if
    :: complete -> send_sum()
    :: else
    fi
}

/* The ACK of a feature that completes a sum goes around once more before it leaves;
 * to lose it there is to lose the ACK. */
inline feature_at_switch() {
    block = 1 + id / 4; source = id % 4; worker = OWNER(source); slot = FIRST_SLOT(block, source);
    if
    :: last_tag[source] > block && !FIRST_TIME    /* stale */
    :: else ->
        first = FIRST_TIME;
        last_tag[source] = (last_tag[source] > block -> last_tag[source] : block);
        accepted_count = (group_tag[worker] == block -> group_count[worker] : 0);
#ifdef ACK_COUNTS_PACKETS
        accepted_count = (accepted_count < 2 -> accepted_count + 1 : 2);
#else
        accepted_count = (accepted_count + first > 2 -> 2 : accepted_count + first);
#endif
        if
        :: group_tag[worker] <= block ->
            group_tag[worker] = block; group_count[worker] = accepted_count
        :: else
        fi;
        if
        :: first -> contribute()
        :: else
        fi;
        if
        :: first && LOOPS(block, source) -> SEND(LOOPING, id)
        :: else ->
            if
            :: ASKS(block, source) -> SEND(ACK, ACK_ID(block, worker, accepted_count))
            :: else
            fi
        fi
    fi
}

/* The one source that both loops and asks is alone in its group. */
inline feature_at_second_slot() {
    block = 1 + id / 4; source = id % 4; slot = 1;
    contribute();
    if
    :: ASKS(block, source) -> SEND(ACK, ACK_ID(block, OWNER(source), 1))
    :: else
    fi
}

inline recall_at_switch() {
    block = BLOCK(id); slot = SLOT(id);
    touch(0, 0);
    if
    :: complete -> send_sum()
    :: else -> SEND(MISSING, PAIR_ID(id, number))
    fi
}

/* The owner answers wherever it waits, but before the opening of the round is over it
 * has no fixed-point features. */
inline fetch_at_switch() {
    block = BLOCK(id / 4); slot = SLOT(id / 4); source = id % 4;
#ifndef NO_RELEASE
    touch(RELEASED, 0);
#endif
    fetched = fetched | BIT(id / 4);
    if
    :: place[OWNER(source)] > 0 -> SEND(RESENT, id)
    :: else
    fi
}

/* Nobody is told to leave the next opening: there the model ends. */
inline advance(tag, workers) {
    if
    :: (tag) != NEXT_ROUND -> flying[ADVANCE] = flying[ADVANCE] | ((workers) << (3 * (tag)))
    :: else
    fi
}

inline done_at_switch() {
    block = id / 3; worker = id % 3;
    if
    :: block < done_tag -> advance(block, BIT(worker))
    :: else ->
        number = (done_tag == block -> done_by : 0);
        done_tag = block;
#ifdef BARRIER_COUNTS
        done_by = number + 1;
        if
        :: done_by == WORKERS -> advance(block, ALL)
        :: done_by > WORKERS -> advance(block, BIT(worker)); done_by = WORKERS
        :: else
        fi
#else
        done_by = number | BIT(worker);
        if
        :: done_by == ALL && number == ALL -> advance(block, BIT(worker))
        :: done_by == ALL && number != ALL -> advance(block, ALL)
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
    flying[LOOPING] = 0; late[LOOPING] = 0;
    fetched = 0; restarted = true
}

/* What was about to leave is gone as well. */
inline lose_queues() {
    flying[ACK] = 0; flying[SUM] = 0; flying[MISSING] = 0;
    flying[RESENT] = 0; flying[ADVANCE] = 0
}
