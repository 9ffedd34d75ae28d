/* turn.p4, of each switch or pool: the tag whose turn it is. What is for a later one is dropped, and
 * its `done` refused. A switch does not know before the first opening of its session is over; one that
 * was restarted takes everything until it does. The worker's own switch looks: a leaf's spine gets only
 * what has passed there. */

#ifdef LEAF_SPINE
#define TURNS 3
#define TURN_OF(worker, tag) LEAF(worker)
#else
#define TURNS POOLS
#define TURN_OF(worker, tag) BARRIER_AT(tag)
#endif

#if POOLS == 1
byte turn[TURNS];
#else
byte turn[POOLS] = {0, 1};
#endif
byte any_turn;   /* those of switches that were restarted */

#define KNOWS(number) \
    (turn[number] >= FIRST_TAG(session) + POOLS || (OPENS_EARLY && !HAS(any_turn, number)))
#define HAS_TURN(number, tag) (KNOWS(number) -> (tag) <= turn[number] : HAS(any_turn, number))
/* Of a feature, and of a recall or fetch. */
#define LETS_IN(number, tag) \
    (KNOWS(number) -> (tag) <= LAST_LET_IN(turn[number]) : HAS(any_turn, number))
#define IS_LET_IN(worker, block) LETS_IN(TURN_OF(worker, TAG(block)), TAG(block))
#ifdef QUESTIONS_EARLY
#define HAS_ITS_TURN(worker, block) IS_LET_IN(worker, block)
#else
#define HAS_ITS_TURN(worker, block) HAS_TURN(TURN_OF(worker, TAG(block)), TAG(block))
#endif

/* Of a `done`: an opening may be the first one. `held` is the tag that is being collected. */
#define IS_PASSED(number, tag, held) (tag < (KNOWS(number) -> turn[number] : held))
#define IS_AHEAD(number, tag) \
    (!HAS_TURN(number, tag) && (KNOWS(number) || !IS_OPENING(tag)))

#define FORGET_TURN(number) turn[number] = 0; any_turn = any_turn | BIT(number)
