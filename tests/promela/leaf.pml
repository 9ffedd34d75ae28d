/* A leaf, beyond what slots.pml has. What it only passes on, as sums from the spine and
 * recalls to it, is one way, from the spine to the worker or back. */

/* With PART_NEW_ID a part that goes up again has an Src_id that the spine has not seen. */
#define NEW_ID(block, slot) (8 + FEATURE_ID(block, slot))

byte done_tag[3], done_by[3];   /* barrier.p4, of both leaves and of the spine */

/* A PART does not carry its payload either: that it is exact is asserted when it leaves. */
inline send_part() {
    assert(slot_value[slot] == WHOLE(block, slot));
    SEND(PART, FEATURE_ID(block, slot))
}

inline completed() {
    if
    :: IS_PART(block, slot) -> send_part()
    :: else -> send_sum()
    fi
}

/* Somebody above lacks the part: it goes up once more if all of it is here. */
inline look_again() {
    touch(0, 0);
    if
#ifdef PART_UNFINISHED
    :: number > 0 && number < RELEASED -> send_part()
#else
#ifdef PART_NEW_ID
    :: complete -> SEND(PART, NEW_ID(block, slot))
#else
    :: complete -> send_part()
#endif
#endif
    :: else
    fi
}

inline recall_at_leaf() {
    block = 1 + id / 4; slot = id % 4;
    look_again()
}

/* Only vertex 3 has a part in its own leaf. A MISSING of another, or without Resend,
 * is only passed on. */
inline missing_at_leaf() {
    block = BLOCK(id / 4); slot = 1;
    look_again();
    SEND(MISSING, id)
}

/* A leaf never says by itself that all are done: it reports, and the spine answers. */
inline done_at_switch() {
    tag = id / 3; worker = id % 3; leaf = LEAF(worker);
    if
    :: IS_AHEAD(leaf, tag) -> SEND(REFUSAL, id)
    :: IS_PASSED(leaf, tag, done_tag[leaf]) ->
#ifdef LEAF_ADVANCES
        SEND(ADVANCE, id)
#else
        SEND(UP_DONE, REPORT_ID(tag, leaf))
#endif
    :: else ->
        done_by[leaf] = (done_tag[leaf] == tag -> done_by[leaf] : 0) | BIT(worker);
        done_tag[leaf] = tag;
        if
        :: done_by[leaf] == MEMBERS(leaf) -> SEND(UP_DONE, REPORT_ID(tag, leaf))
        :: else
        fi
    fi
}

inline advance_at_leaf() {
    tag = id / 2; leaf = id % 2;
    if
    :: done_tag[leaf] == tag && done_by[leaf] == MEMBERS(leaf) -> turn[leaf] = NEXT(tag)
    :: else
    fi;
    flying[ADVANCE] = flying[ADVANCE] | (MEMBERS(id % 2) << (3 * (id / 2)))
}

inline refusal_at_leaf() {
    flying[REFUSAL] = flying[REFUSAL] | (MEMBERS(id % 2) << (3 * (id / 2)))
}

/* All registers are 0 again, and what went around inside is gone. */
inline restart_leaf_0() {
    last_tag[0] = 0; last_tag[1] = 0;
    group_tag[0] = 0; group_tag[1] = 0; group_count[0] = 0; group_count[1] = 0;
    slot_tag[0] = 0; slot_count[0] = 0; slot_value[0] = 0;
    slot_tag[1] = 0; slot_count[1] = 0; slot_value[1] = 0;
    done_tag[0] = 0; done_by[0] = 0;
    FORGET_TURN(0);
    flying[LOOPING] = 0; late[LOOPING] = 0;
    fetched = fetched & ~BIT(0); restarted = true
}

inline restart_leaf_1() {
    last_tag[2] = 0; group_tag[2] = 0; group_count[2] = 0;
    slot_tag[2] = 0; slot_count[2] = 0; slot_value[2] = 0;
    done_tag[1] = 0; done_by[1] = 0;
    FORGET_TURN(1);
    restarted = true
}

/* What was about to leave is gone as well; `of_worker_2` are the packets that go through
 * leaf 1. */
#define LOSES(kind, leaf, of_worker_2) \
    flying[kind] = flying[kind] & ((leaf) == 1 -> ~(of_worker_2) : (of_worker_2))

inline lose_queues_of_leaf(number) {
    LOSES(ACK, number, 3 << 4 | 3 << 10);
    LOSES(SUM, number, BIT(2));
    LOSES(RECALL, number, BIT(2) | BIT(6));
    LOSES(MISSING, number, 15 << 8);
    LOSES(FETCH, number, 15 << 8);
    LOSES(RESENT, number, 15 << 8);
    LOSES(ADVANCE, number, BIT(2) | BIT(5) | BIT(8));
    LOSES(REFUSAL, number, BIT(2) | BIT(5) | BIT(8));
    LOSES(PART, number, BIT(2) | BIT(6) | BIT(10) | BIT(14));
    LOSES(UP_DONE, number, 170)
}
