/* The spine: what slots.pml has about recalls and fetches, and partial sums and reports
 * of leaves in place of features and `done`s of workers. */

byte part_tag[FIRST_OF_SPINE];   /* seen.p4: the slot of a leaf stands for its Src_id */

#ifdef NO_PART_TAG
#define FIRST_PART true
#else
#define FIRST_PART (part_tag[part] < block || id >= 8)
#endif

inline part_at_spine() {
    block = 1 + id % 8 / 4; part = id % 4; slot = SLOT(VERTEX(block, part));
    if
    :: FIRST_PART ->
        part_tag[part] = (part_tag[part] > block -> part_tag[part] : block);
        carried = WANTED(block, part); content = WHOLE(block, part);
        touch(carried, content);
        if
        :: complete -> send_sum()
        :: else
        fi
    :: else
    fi
}

/* The first time the answer is all. The second time the other leaves are asked for their
 * parts, and so is the asker's, by the answer, if it has one. Of its own sum leaf 0 itself
 * says that it is not complete. */
inline not_complete() {
    if
    :: vertex == 0 || id < 4 -> SEND(MISSING, PAIR_ID(vertex, number))
    :: else ->
        flying[DOWN_RECALL] = flying[DOWN_RECALL] |
            ((PARTS(vertex) & ~OWN_PARTS(vertex)) << (4 * (block - 1)));
        if
        :: OWN_PARTS(vertex) -> SEND(DOWN_MISSING, PAIR_ID(vertex, number))
        :: else -> SEND(MISSING, PAIR_ID(vertex, number))
        fi
    fi
}

/* Nobody is told to leave the next opening: there the model ends. */
inline advance(leaves) {
    if
    :: !IS_LAST(tag) -> flying[DOWN_ADVANCE] = flying[DOWN_ADVANCE] | ((leaves) << (2 * tag))
    :: else
    fi
}

inline done_at_spine() {
    tag = id / 2; leaf = id % 2;
    if
    :: IS_AHEAD(SPINE, tag) -> SEND(DOWN_REFUSAL, id)
    :: IS_PASSED(SPINE, tag, done_tag[SPINE]) && TELLS_NO_MORE(done_tag[SPINE]) ->
        SEND(DOWN_REFUSAL, id)
    :: IS_PASSED(SPINE, tag, done_tag[SPINE]) && !TELLS_NO_MORE(done_tag[SPINE]) ->
        advance(BIT(leaf))
    :: else ->
        number = (done_tag[SPINE] == tag -> done_by[SPINE] : 0);
        done_tag[SPINE] = tag;
#ifdef SPINE_COUNTS
        done_by[SPINE] = (number + 1 > LEAVES -> LEAVES : number + 1);
        if
        :: number >= LEAVES -> advance(BIT(leaf)); turn[SPINE] = NEXT(tag)
        :: number == LEAVES - 1 -> advance(BOTH); turn[SPINE] = NEXT(tag)
        :: else
        fi
#else
        done_by[SPINE] = number | BIT(leaf);
        if
        :: done_by[SPINE] == BOTH && number == BOTH -> advance(BIT(leaf)); turn[SPINE] = NEXT(tag)
        :: done_by[SPINE] == BOTH && number != BOTH -> advance(BOTH); turn[SPINE] = NEXT(tag)
        :: else
        fi
#endif
    fi
}

inline restart_spine() {
    part_tag[0] = 0; part_tag[1] = 0; part_tag[2] = 0;
    slot_tag[3] = 0; slot_count[3] = 0; slot_value[3] = 0;
    slot_tag[4] = 0; slot_count[4] = 0; slot_value[4] = 0;
    done_tag[SPINE] = 0; done_by[SPINE] = 0;
    FORGET_TURN(SPINE);
    fetched = fetched & BIT(0); restarted = true
}

/* All but what is about vertex 0, which leaf 0 sums alone. */
inline lose_queues_of_spine() {
    flying[SUM] = flying[SUM] & BIT(0);
    flying[MISSING] = flying[MISSING] & 15;
    flying[RESENT] = flying[RESENT] & 15;
    flying[DOWN_ADVANCE] = 0; flying[DOWN_RECALL] = 0; flying[DOWN_MISSING] = 0;
    flying[DOWN_REFUSAL] = 0
}
