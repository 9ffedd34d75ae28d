/* Tags, blocks and pools. Tags and blocks are numbered on, over rounds and sessions, as the tags of
 * docs/protocol.md are: the larger number is the later one. With ROUNDS=2 of two blocks
 *
 *   tag     0        1  2  3        4  5  6
 *           opening        opening        the opening after the last round
 *   block            1  2           3  4
 *
 * and with ROUNDS=1 of UNITS=3 blocks and POOLS=2
 *
 *   pool 0  0        2     4  5        the openings, blocks 1 and 3, and the next opening
 *   pool 1     1        3        6     the opening, block 2, and the next opening
 *
 * NO_BLOCKS has a closing in place of blocks, ONE_BLOCK one block in each round: then pool 1 has
 * openings only. With NEW_SESSION there are two sessions of so many rounds. Nobody is told to leave
 * the last openings of a session: there the model ends. */

#ifndef POOLS
#define POOLS 1
#endif

#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifdef NEW_SESSION
#define SESSIONS 2
#else
#define SESSIONS 1
#endif

#ifdef NO_BLOCKS
#define BLOCKS 1    /* that arrays are not empty; no tag is one of a block */
#ifdef NO_CLOSING
#define UNITS 0
#else
#define UNITS 1
#endif
#else
#ifdef ONE_BLOCK
#define UNITS 1
#endif
#ifndef UNITS
#define UNITS 2
#endif
#define BLOCKS UNITS
#endif
#define TAGS_OF_A_ROUND (POOLS + UNITS)

#define BLOCKS_OF_A_SESSION (ROUNDS * BLOCKS)
#define TAGS_OF_A_SESSION (ROUNDS * TAGS_OF_A_ROUND + POOLS)
#define VERTICES (2 * SESSIONS * BLOCKS_OF_A_SESSION)

/* Sets of packets are the bits of an int. */
#if POOLS > 2
#error "One pool or two."
#endif
#if SESSIONS * BLOCKS_OF_A_SESSION > 4 || SESSIONS * TAGS_OF_A_SESSION > 10
#error "More blocks or tags than an int has bits for."
#endif
#if defined BUNDLES && (defined LEAF_SPINE || defined NEW_SESSION || defined NO_BLOCKS)
#error "With bundles there are one switch, one session, and blocks."
#endif
#if defined LEAF_SPINE && (defined NEW_SESSION || defined ONE_BLOCK || defined SECOND_PROCESS)
#error "With leaves and a spine there is one session, of two blocks or of none."
#endif
#if defined LEAF_SPINE && (POOLS > 1 || UNITS > 2)
#error "With leaves and a spine there are one pool and two blocks."
#endif
#if defined LEAF_SPINE && ROUNDS > 1 && (!defined NO_BLOCKS || defined RESTARTS)
#error "With leaves and a spine there are several rounds only without blocks and restarts."
#endif

#if defined EARLY && (EARLY > ROUNDS || defined NO_BLOCKS)
#error "No opening has early features."
#endif
#if defined SLOW && EARLY != 1
#error "The first round with early features is the first one, or no worker is slow in it."
#endif
#if defined EARLY && EARLY == 1 && defined NEW_SESSION
#error "The first round of a session has no early features."
#endif

#define SESSION_OF(tag) ((tag) / TAGS_OF_A_SESSION)
#define FIRST_TAG(session) ((session) * TAGS_OF_A_SESSION)
#define IN_SESSION(tag) ((tag) % TAGS_OF_A_SESSION)
#define IN_ROUND(tag) (IN_SESSION(tag) % TAGS_OF_A_ROUND)
#define IS_LAST(tag) (IN_SESSION(tag) >= ROUNDS * TAGS_OF_A_ROUND)
#define IS_OPENING(tag) (IN_ROUND(tag) < POOLS)
/* The first opening of its round. */
#define OPENING_OF(tag) ((tag) - IN_ROUND(tag))
#if POOLS == 1
#define POOL(tag) 0
#else
#define POOL(tag) (IN_ROUND(tag) % POOLS)
#endif

/* What each worker has in the pool of a tag: its number, and the tag that it is at. */
#define IN(worker, tag) ((worker) + 3 * POOL(tag))
#define AT(worker, tag) place[IN(worker, tag)]

/* Where the switch keeps the last tag of a source, a worker's accepted group, and the barrier. */
#ifdef ONE_DEDUP
#define SEEN_AT(source, tag) (source)
#else
#define SEEN_AT(source, tag) ((source) + 4 * POOL(tag))
#endif
#ifdef ONE_GROUP
#define GROUP_AT(worker, tag) (worker)
#else
#define GROUP_AT(worker, tag) IN(worker, tag)
#endif
#ifdef ONE_BARRIER
#define BARRIER_AT(tag) 0
#else
#define BARRIER_AT(tag) POOL(tag)
#endif

/* The tag before this one in its pool, where no round was void: in an opening that of a round of
 * UNITS blocks. */
#define PREVIOUS(tag) \
    (IS_OPENING(tag) -> OPENING_OF(tag) - 1 - (TAGS_OF_A_ROUND - 1 - POOL(tag)) % POOLS : (tag) - POOLS)

/* The tag of a block, and the block of a tag: 0 where it has none. */
#define TAG(block) \
    (FIRST_TAG(((block) - 1) / BLOCKS_OF_A_SESSION) + POOLS + ((block) - 1) % BLOCKS \
     + TAGS_OF_A_ROUND * (((block) - 1) % BLOCKS_OF_A_SESSION / BLOCKS))
#ifdef NO_BLOCKS
#define BLOCK_AT(tag) 0
#else
#define BLOCK_AT(tag) \
    (IS_OPENING(tag) -> 0 : SESSION_OF(tag) * BLOCKS_OF_A_SESSION \
     + IN_SESSION(tag) / TAGS_OF_A_ROUND * BLOCKS + IN_ROUND(tag) - POOLS + 1)
#endif
