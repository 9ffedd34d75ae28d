/* The plan: who sends what to whom. Small, but with all that can go wrong.
 *
 *   block 1   slot 0: vertex 0 at worker 0, from sources 2 and 3
 *             slot 1: vertex 1 at worker 1, from source 2
 *   block 2   slot 0: vertex 2 at worker 2, from sources 0 and 1
 *             slot 1: vertex 3 at worker 0, from sources 1 and 2
 *
 * Sources 0, 1 and 2 are at the workers of their number, source 3 at worker 2.
 * - Both blocks use the same two slots, and slot 1 expects fewer in block 1 than in
 *   block 2: what block 1 leaves behind could complete a sum of block 2.
 * - In each block one source goes into both slots, so that it can be lost in between.
 * - Worker 2 sends a group of two in block 1; only the last of a group asks for an ACK.
 * - Workers 0 and 1 send nothing in block 1, and each waits for worker 2.
 *
 * ONE_BLOCK has what is block 2 here. With POOLS=2 what is block 1 here comes as blocks 1 and 4, and what
 * is block 2 as 2 and 3, so that both pools have one after the other.
 *
 * TWO_WORKERS has worker 0 and 1 only, who send one feature each in each block, to one sum: in what is
 * block 1 here that of worker 0, in block 2 that of worker 1. What follows is about blocks and vertices that are
 * numbered on over rounds and sessions; the same block of the plan comes again in each.
 *
 * With BUNDLES worker 0 awaits both sums of each block, so one waits on the shelf for the other. A source
 * that goes into both slots is a frame with a row for each; with TWO_WORKERS it is source 1, and slot 1 has
 * nothing else. */

#define SLOTS (2 * POOLS)
#define WORKERS 3    /* so many have numbers */
#ifdef TWO_WORKERS
#define LAST_WORKER 1
#define ALL 3
#else
#define LAST_WORKER 2
#define ALL 7
#endif

#ifdef ONE_BLOCK
#define PLANNED(block) 2
#else
#define PLANNED(block) \
    (1 + (((block) - 1) % BLOCKS / POOLS + (POOLS - 1) * (((block) - 1) % BLOCKS)) % 2)
#endif
#define PLANNED_VERTEX(vertex) (2 * (PLANNED(BLOCK(vertex)) - 1) + (vertex) % 2)

#define BLOCK(vertex) (1 + (vertex) / 2)
#define SLOT(vertex) ((vertex) % 2 + FIRST_SLOT_OF_POOL(BLOCK(vertex)))
#define VERTEX(block, slot) (2 * ((block) - 1) + (slot) % 2)
#ifdef NO_POOL_OFFSET
#define FIRST_SLOT_OF_POOL(block) 0
#else
#define FIRST_SLOT_OF_POOL(block) (2 * POOL(TAG(block)))
#endif

#ifdef TWO_WORKERS
#define HOME(vertex) (PLANNED(BLOCK(vertex)) - 1)
#define SOURCES(vertex) ((vertex) % 2 -> 2 : 3)
#define EXPECTED(vertex) (2 - (vertex) % 2)
#define OWNER(source) (source)
#define SENDS(worker, block) BIT(worker)
#define GROUP_SIZE(block) 1
#define LAST_OF_GROUP(worker, block) (worker)
#define LOOPS(block, source) (IN_BUNDLES && (source) == 1)
#define AWAITS(worker, block) (((worker) == PLANNED(block) - 1) << VERTEX(block, 0))
#define EXACT(vertex) ((vertex) % 2 -> PAYLOAD(BLOCK(vertex), 1) : BOTH_OF(vertex, 0, 1))
#else
#define HOME(vertex) (PLANNED_VERTEX(vertex) % 3)
#define SOURCES(vertex) (PLANNED_VERTEX(vertex) == 0 -> 12 : (PLANNED_VERTEX(vertex) == 1 -> 4 : \
                        (PLANNED_VERTEX(vertex) == 2 -> 3 : 6)))
#define EXPECTED(vertex) (PLANNED_VERTEX(vertex) == 1 -> 1 : 2)
#define OWNER(source) ((source) == 3 -> 2 : (source))

/* What a worker sends in a block, how many those are, and the last of them. */
#define SENDS(worker, block) (PLANNED(block) == 2 -> BIT(worker) : ((worker) == 2 -> 12 : 0))
#define GROUP_SIZE(block) (PLANNED(block) == 1 -> 2 : 1)
#define LAST_OF_GROUP(worker, block) (PLANNED(block) == 1 -> 3 : (worker))

/* Whether a source goes into both slots. */
#define LOOPS(block, source) (HAS(SOURCES(VERTEX(block, 0)) & SOURCES(VERTEX(block, 1)), source))

/* The vertices whose sums a worker awaits in a block. */
#define AWAITS(worker, block) \
    ((PLANNED(block) == 1 -> ((worker) == 2 -> 0 : BIT(worker)) \
                           : ((worker) == 0 -> 2 : ((worker) == 2 -> 1 : 0))) << VERTEX(block, 0))

/* What the sum of a vertex must be. */
#define EXACT(vertex) (PLANNED_VERTEX(vertex) == 0 -> BOTH_OF(vertex, 2, 3) : \
                      (PLANNED_VERTEX(vertex) == 1 -> PAYLOAD(BLOCK(vertex), 2) : \
                      (PLANNED_VERTEX(vertex) == 2 -> BOTH_OF(vertex, 0, 1) : \
                                                      BOTH_OF(vertex, 1, 2))))
#endif

#ifdef BUNDLES
#define IN_BUNDLES true
#undef HOME
#undef AWAITS
#define HOME(vertex) 0
#define AWAITS(worker, block) (((worker) == 0 -> 3 : 0) << VERTEX(block, 0))
#else
#define IN_BUNDLES false
#endif

#define BOTH_OF(vertex, source, other) \
    PAYLOAD(BLOCK(vertex), source) + PAYLOAD(BLOCK(vertex), other)
#define ASKS(block, source) ((source) == LAST_OF_GROUP(OWNER(source), block))
#define FIRST_SLOT(block, source) \
    (FIRST_SLOT_OF_POOL(block) + (HAS(SOURCES(VERTEX(block, 0)), source) -> 0 : 1))
#define SECOND_SLOT(block) (FIRST_SLOT_OF_POOL(block) + 1)

/* How many contributions a slot awaits in a block, and what they must be together. */
#define WANTED(block, slot) EXPECTED(VERTEX(block, slot))
#define WHOLE(block, slot) EXACT(VERTEX(block, slot))
