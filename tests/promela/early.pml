/* Early features. With EARLY=n the DONE of the last block before round n, and before every later
 * round, allows features of the first block during the opening that follows. With EARLY=1 the model
 * starts in such an opening, as if a round preceded it.
 *
 * In round n at most one worker, any, has features that do not fit the predicted scale: the round
 * is void. This worker sends none early. The others learn it from the ADVANCE of the opening, drop
 * what they have, and close the first block. The next round has no early features.
 *
 * With SLOW=n one worker, any, begins round 1 at any moment until the timers of the others have
 * fired n times, so that the others may wait in the opening for long.
 *
 * The switch writes `turn` and `early` together, so here `early` follows from `turn`.
 *
 * Mistakes of workers: with REPORTS_EARLY they report the first block without the ADVANCE of the
 * opening; with FETCHES_EARLY they fetch without it; with VOID_USED they take a void round for one
 * that is not; with VOID_KEPT they keep its sums; with OWN_MAGNITUDE the `done` of a block has the
 * worker's own magnitude. Of the switch: with LATER_LET_IN it lets in features of any later block
 * during the opening. Of both: with VOID_TAG_AGAIN the block after a void one has the same tag.
 *
 * With EARLY_UNKNOWN the switch does not take the `done` that announces early features for a sign that
 * its process may be in their round: a second process that opens the round is summed with the
 * features of the first.
 *
 * Two switches are no mistakes: with QUESTIONS_EARLY recalls and fetches are let in as features
 * are; with SERVES_EARLY a worker answers fetches of the features that it has sent early. */

#ifdef EARLY
#define NOBODY WORKERS

byte unfit = NOBODY;   /* the worker whose features do not fit in round EARLY */
bool chosen;           /* which worker that is */
#define IS_CHOSEN chosen

bool heard;            /* opening.p4: whether the switch knows of these features */
#define FORGET_MAXIMUM heard = false

#define VOID_OPENING ((EARLY - 1) * TAGS_OF_A_ROUND)
#define AFTER_VOID (VOID_OPENING + TAGS_OF_A_ROUND)
#define IS_VOID(tag) (unfit != NOBODY && OPENING_OF(tag) == VOID_OPENING)
#define FOLLOWS_VOID(tag) (unfit != NOBODY && OPENING_OF(tag) == AFTER_VOID)

#define IS_EARLY(tag) \
    (IS_OPENING(tag) && POOL(tag) < UNITS && !IS_LAST(tag) \
     && IN_SESSION(tag) >= VOID_OPENING && !FOLLOWS_VOID(tag))
/* A second process has predicted nothing when it begins. */
#ifdef SECOND_PROCESS
#define PREDICTS(worker, tag) !(HAS(second, worker) && (tag) < POOLS)
#else
#define PREDICTS(worker, tag) true
#endif
#define SENT_EARLY(worker, tag) \
    (IS_EARLY(tag) && !(OPENING_OF(tag) == VOID_OPENING && (worker) == unfit) \
     && PREDICTS(worker, tag) && !IS_MISPREDICTED(tag))

/* Nobody sends early, and the switch lets in features of a later block. */
#ifdef MISPREDICTED
#define IS_MISPREDICTED(tag) (OPENING_OF(tag) == VOID_OPENING)
#else
#define IS_MISPREDICTED(tag) false
#endif

#define OPENS_EARLY (EARLY == 1)
#ifdef LATER_LET_IN
#define LAST_LET_IN(turn) (IS_EARLY(turn) -> 255 : (turn))
#else
#define LAST_LET_IN(turn) (IS_EARLY(turn) -> (turn) + POOLS + POOLS * IS_MISPREDICTED(turn) : (turn))
#endif
#ifdef VOID_TAG_AGAIN
#define TAGGED_AS(block) ((block) - (FOLLOWS_VOID(TAG(block)) && IN_ROUND(TAG(block)) == POOLS))
#else
#define TAGGED_AS(block) (block)
#endif
#ifdef VOID_USED
#define DROPS(tag) false
#else
#define DROPS(tag) (IS_VOID(tag) && !IS_OPENING(tag))
#endif
#else
#define FOLLOWS_VOID(tag) false
#define VOID_OPENING 0
#define IS_CHOSEN true
#define OPENS_EARLY false
#define IS_VOID(tag) false
#define IS_EARLY(tag) false
#define SENT_EARLY(worker, tag) false
#define LAST_LET_IN(turn) (turn)
#define TAGGED_AS(block) (block)
#define DROPS(tag) false
#endif

/* What the DONEs of a tag say comes next: in the pool of the tag. */
#define NEXT(tag) \
    (IS_LAST(tag) || (IN_ROUND(tag) < UNITS && !(IS_VOID(tag) && !IS_OPENING(tag))) \
     -> (tag) + POOLS : OPENING_OF(tag) + TAGS_OF_A_ROUND + POOL(tag))
/* What comes before. */
#define LAST_PASSED(tag) \
    (FOLLOWS_VOID(tag) && IS_OPENING(tag) \
     -> VOID_OPENING + POOL(tag) + (POOL(tag) < UNITS -> POOLS : 0) : PREVIOUS(tag))

/* All workers must be done with this tag before the first packet of a block is let in. */
#define LAST_BEFORE(tag) \
    (IS_EARLY(PREVIOUS(tag)) -> PREVIOUS(PREVIOUS(tag)) : PREVIOUS(tag))

/* The tag of the block that a worker's features are of, in the pool of `tag`: in an opening those
 * it has sent early. */
#define SENDING_AT(worker, tag) \
    (AT(worker, tag) + (HAS(closing, IN(worker, tag)) && SENT_EARLY(worker, AT(worker, tag)) -> POOLS : 0))

inline send_features(of_block) {
    flying[FEATURE] = flying[FEATURE] | (SENDS(worker, of_block) << (4 * ((of_block) - 1)));
    accepted = (SENDS(worker, of_block) -> accepted & ~BIT(IN(worker, TAG(of_block)))
                                        : accepted | BIT(IN(worker, TAG(of_block))))
}

inline send_early_features(opening) {
    if
    :: SENT_EARLY(worker, opening) -> send_features(BLOCK_AT((opening) + POOLS))
    :: else
    fi
}

/* In all pools. */
inline open_round(opening) {
    for (pool : 0 .. POOLS - 1) {
        closing = closing | BIT(worker + 3 * pool);
        send_done((opening) + pool);
        send_early_features((opening) + pool)
    }
}

/* The round is void: nothing of it is used. */
inline drop_all() {
#ifndef VOID_KEPT
    have = have & ~AWAITS(worker, block);
#endif
    accepted = accepted | BIT(IN(worker, tag));
    for (vertex : 0 .. VERTICES - 1) {
        if
        :: HAS(AWAITS(worker, block), vertex) ->
            fetching = fetching & ~BIT(vertex); doubt[vertex] = 0; raw[vertex] = 0
        :: else
        fi
    }
}

#ifdef SLOW
byte slow = NOBODY;   /* the worker that has not begun round 1; NOBODY: all have */
byte firings;         /* how often timers have fired before it began */

#define HAS_BEGUN(worker) ((worker) != slow)
#define BEGIN_DUE (slow != NOBODY && firings == SLOW)

inline choose_slow() {
    if
    :: slow = 0
    :: slow = 1
    :: LAST_WORKER == 2 -> slow = 2
    fi;
    closing = closing & ~(BIT(slow) | BIT(slow + 3 * (POOLS - 1)))
}

#define ALL_BEGUN (ALL & ~BIT(slow))

inline begin() {
    worker = slow; slow = NOBODY; firings = 0;
    open_round(0)
}

inline count_firing() {
    firings = firings + (slow != NOBODY)
}
#else
#define HAS_BEGUN(worker) true
#define ALL_BEGUN ALL
#define BEGIN_DUE false
#define count_firing()
#endif

#ifdef EARLY
inline choose_unfit() {
    if
    :: unfit = NOBODY
#ifndef MISPREDICTED
    :: unfit = 0
    :: unfit = 1
    :: LAST_WORKER == 2 -> unfit = 2
#endif
    fi;
    chosen = true
}

/* A `done` of the opening has the worker's own magnitude, a later one that of all. */
#ifdef OWN_MAGNITUDE
#define REPORTS_UNFIT (IS_VOID(tag) && worker == unfit)
#else
#define REPORTS_UNFIT (IS_VOID(tag) && (!IS_OPENING(tag) || worker == unfit))
#endif

inline hear_magnitude() {
    heard = heard || REPORTS_UNFIT
}

/* All hear the same maximum. */
inline assert_maximum() {
    assert(!IS_VOID(tag) || !IS_OPENING(tag) || heard)
}
#else
#define hear_magnitude() skip
#define FORGET_MAXIMUM skip
#define assert_maximum() skip
#endif
