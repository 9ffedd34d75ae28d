/* What features, recalls and fetches do to the registers of p4src/, in any switch. Slots
 * are numbered over all switches. What follows a slot that is complete, or is not, depends
 * on where the switch stands: `completed` and `not_complete`. */

/* A payload says what has been added up: two bits for each source of each block, so
 * that a source that is counted twice, or one of another block, is another number. */
#define PAYLOAD(block, source) (1 << (2 * (4 * ((block) - 1) + (source))))

/* barrier.p4: the maximum is that of the newest round. The answer to an opening that is before
 * `newest` names that round, and the worker ends with an error. */
#define TELLS_NO_MORE(newest) (IS_OPENING(tag) && OPENING_OF(newest) > OPENING_OF(tag))

#define RELEASED 3   /* counts add up to this and no further; no vertex expects it */

/* A slot's tag is that of a block: the block stands for it. */
byte last_tag[4 * POOLS];                       /* dedup.p4, of each source in each pool */
byte group_tag[WORKERS * POOLS], group_count[WORKERS * POOLS];
byte slot_tag[SLOTS], slot_count[SLOTS];        /* aggregator.p4 */
int slot_value[SLOTS];

/* Not in the switch, only for assertions. */
byte fetched;     /* vertices for which a fetch has passed since the last restart */
bool restarted;

/* Mistakes that could be in a switch, each turned on by its name. */
#ifdef NO_LAST_TAG
#define FIRST_TIME true
#else
#define FIRST_TIME (last_tag[seen] < TAGGED_AS(block))
#endif
#ifdef NO_SLOT_TAG
#define TAGGED false
#else
#ifdef NO_SPINE_SLOT_TAG
#define TAGGED (slot < FIRST_OF_SPINE)
#else
#define TAGGED true
#endif
#endif
#define OVERWRITES (TAGGED && slot_tag[slot] < TAGGED_AS(block))
#ifdef STALE_ADDED
#define ADDS (!TAGGED || slot_tag[slot] == TAGGED_AS(block) || count == 1)
#else
#define ADDS (!TAGGED || slot_tag[slot] == TAGGED_AS(block))
#endif

#ifdef NO_RELEASE
#define RELEASES false
#else
#ifdef NO_SPINE_RELEASE
#define RELEASES (slot < FIRST_OF_SPINE)
#else
#define RELEASES true
#endif
#endif

/* Invariant 3: nobody needs any more what is in the slot. */
#define ALL_ARE_DONE_WITH(before) \
    (before < 0 || (IS_DONE_WITH(0, before) && IS_DONE_WITH(1, before) \
      && IS_DONE_WITH(LAST_WORKER, before)))

inline assert_slot_is_free() {
    before = LAST_BEFORE(TAG(block));
    assert(ALL_ARE_DONE_WITH(before));
    before = (slot_tag[slot] -> TAG(slot_tag[slot]) : -1);
    assert(ALL_ARE_DONE_WITH(before))
}

/* One visit to a slot: of a contribution, or of a recall or fetch, which bring nothing
 * but a count of 0 or RELEASED. Sets `number`, the contributions in the slot, and
 * `complete`. */
inline touch(count, payload) {
    if
    :: OVERWRITES ->
        assert_slot_is_free();
        slot_tag[slot] = TAGGED_AS(block); slot_count[slot] = 0; slot_value[slot] = 0
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
    complete = (ADDS && number == WANTED(block, slot));
#ifdef LOOK_INSIDE
    /* Invariants 1, 3 and 4: at any time only sources of the slot's own vertex under
     * its tag, each at most once. */
    assert((slot_value[slot] & ~WHOLE(slot_tag[slot], slot)) == 0)
#endif
}

/* Invariants 1, 3 and 4 as the workers see them, and what a release promises. */
inline assert_sum() {
    assert(slot_value[slot] == WHOLE(block, slot));
#ifndef SUM_AFTER_FETCH_ALLOWED
    assert(!HAS(fetched, VERTEX(block, slot)));
#endif
}

inline send_sum() {
    assert_sum();
    SEND(SUM, VERTEX(block, slot))
}

inline contribute() {
    touch(1, PAYLOAD(BLOCK_SENT(block), source));
    if
    :: complete -> completed()
    :: else
    fi
}

/* The ACK of a feature that completes a sum goes around once more before it leaves;
 * to lose it there is to lose the ACK. */
inline feature_at_switch() {
    block = 1 + id / 4; source = id % 4; worker = OWNER(source); slot = FIRST_SLOT(block, source);
    seen = SEEN_AT(source, TAG(block)); group = GROUP_AT(worker, TAG(block));
    if
    :: !IS_LET_IN(worker, block)
    :: IS_LET_IN(worker, block) && last_tag[seen] > TAGGED_AS(block) && !FIRST_TIME    /* stale */
    :: else ->
        first = FIRST_TIME;
        last_tag[seen] = (last_tag[seen] > TAGGED_AS(block) -> last_tag[seen] : TAGGED_AS(block));
        accepted_count = (group_tag[group] == TAGGED_AS(block) -> group_count[group] : 0);
#ifdef ACK_COUNTS_PACKETS
        accepted_count = (accepted_count < 2 -> accepted_count + 1 : 2);
#else
        accepted_count = (accepted_count + first > 2 -> 2 : accepted_count + first);
#endif
        if
        :: group_tag[group] <= TAGGED_AS(block) ->
            group_tag[group] = TAGGED_AS(block); group_count[group] = accepted_count
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
            :: ASKS(block, source) && accepted_count > 0 ->
                SEND(ACK, ACK_ID(block, worker, accepted_count))
            :: else    /* none of a later group: its sender is past this one */
            fi
        fi
    fi
}

/* The one source that both loops and asks is alone in its group. */
inline feature_at_second_slot() {
    block = 1 + id / 4; source = id % 4; slot = SECOND_SLOT(block);
    contribute();
    if
    :: ASKS(block, source) -> SEND(ACK, ACK_ID(block, OWNER(source), 1))
    :: else
    fi
}

inline recall_at_switch() {
    vertex = id % VERTICES; block = BLOCK(vertex); slot = SLOT(vertex);
    if
    :: HAS_ITS_TURN(HOME(vertex), block) ->
        touch(0, 0);
        if
        :: complete -> recalled()
        :: else -> not_complete()
        fi
    :: else
    fi
}

/* The owner answers wherever it waits, but for its own round only, and before the opening of
 * the round is over it has no fixed-point features, or with SERVES_EARLY those that it has sent. */
#ifdef SERVES_EARLY
#define HAS_FIXED_POINT(worker, opening) \
    (SENDING_AT(worker, 0) > (opening) && SENDING_AT(worker, POOLS - 1) > (opening) + POOLS - 1)
#else
#define HAS_FIXED_POINT(worker, opening) IS_OPEN(worker, opening)
#endif
#define SERVES(worker, tag) \
    (HAS_FIXED_POINT(worker, OPENING_OF(tag)) \
     && AT(worker, 0) <= OPENING_OF(tag) + TAGS_OF_A_ROUND \
     && !HAS(stopped, worker) && !DROPS(tag))

inline fetch_at_switch() {
    block = BLOCK(id / 4); slot = SLOT(id / 4); source = id % 4;
    if
    :: HAS_ITS_TURN(HOME(id / 4), block) ->
        if
        :: RELEASES -> touch(RELEASED, 0)
        :: else
        fi;
        fetched = fetched | BIT(id / 4);
        if
        :: SERVES(OWNER(source), TAG(block)) && IS_LET_IN(OWNER(source), block) ->
            SEND(RESENT, id)
        :: else
        fi
    :: else
    fi
}

