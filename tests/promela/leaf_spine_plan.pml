/* The plan of two leaves and a spine, as switchgnn/planner/plan/leaf_spine.py would split it.
 *
 *   leaf 0, workers 0 and 1            leaf 1, worker 2       spine
 *   block 1   slot 0: vertex 0 from 1  slot 2: part of 1      slot 3: vertex 1 from leaf 1
 *   block 2   slot 0: part of 2        slot 2: part of 3      slot 3: vertex 3 from both leaves
 *             slot 1: part of 3                               slot 4: vertex 2 from leaf 0
 *
 * Vertices 0, 1, 2, 3 are at workers 0, 1, 2, 0; sources 0, 1 and 2 at the workers of
 * their number. Vertex 1 is summed from source 2, 2 from 0 and 1, 3 from 1 and 2.
 * - Slot 3 expects fewer in block 1 than in block 2: what block 1 leaves behind could
 *   complete a sum of block 2. So does slot 0, where block 1 has a sum that is the leaf's own.
 * - The part of vertex 2 is of two contributions. Source 1 goes around in leaf 0 in
 *   block 2, so that it can be lost between two parts.
 * - In block 1 worker 0 needs nobody behind the other leaf, and its neighbour worker 1
 *   does: so one of a leaf may be through a barrier that the other waits at. */

#define SLOTS 5
#define FIRST_OF_SPINE 3
#define WORKERS 3
#define LAST_WORKER 2
#define ALL 7

#define LEAVES 2
#define BOTH 3
#define SPINE 2
#define LEAF(worker) ((worker) / 2)
#define MEMBERS(leaf) ((leaf) == 0 -> 3 : 4)

#define BLOCK(vertex) (1 + (vertex) / 2)
#define HOME(vertex) ((vertex) == 3 -> 0 : (vertex))
#define SOURCES(vertex) ((vertex) == 0 -> 2 : ((vertex) == 1 -> 4 : ((vertex) == 2 -> 3 : 6)))
#define OWNER(source) (source)

/* The slot that completes the sum of a vertex, and for which vertex a slot is. */
#define SLOT(vertex) ((vertex) == 0 -> 0 : ((vertex) == 2 -> 4 : 3))
#define VERTEX(block, slot) \
    ((slot) % 4 == 0 -> ((block) == 1 -> 0 : 2) : ((slot) == 1 || (block) == 2 -> 3 : 1))

/* Slots of leaves that hold a part of a sum, and which of them is of the vertex's own leaf. */
#define IS_PART(block, slot) ((slot) < FIRST_OF_SPINE && ((slot) != 0 || (block) == 2))
#define PARTS(vertex) ((vertex) == 1 -> 4 : ((vertex) == 2 -> 1 : 6))
#define OWN_PARTS(vertex) ((vertex) == 3 -> 2 : 0)

/* What a worker sends in a block: each is a group of its own. */
#define SENDS(worker, block) ((block) == 1 && (worker) == 0 -> 0 : BIT(worker))
#define GROUP_SIZE(block) 1
#define LAST_OF_GROUP(worker, block) (worker)
#define ASKS(block, source) true

/* The slots that a source visits: the first one, and whether the second one follows. */
#define FIRST_SLOT(block, source) ((source) == 2 -> 2 : 0)
#define SECOND_SLOT(block) 1
#define LOOPS(block, source) ((block) == 2 && (source) == 1)

/* The vertices whose sums a worker awaits in a block. */
#define AWAITS(worker, block) \
    ((block) == 1 -> ((worker) == 2 -> 0 : BIT(worker)) \
                   : ((worker) == 0 -> 8 : ((worker) == 2 -> 4 : 0)))

/* How many contributions a slot awaits in a block, and what they must be together. */
#define WANTED(block, slot) ((slot) == 4 -> 2 : ((slot) % 3 == 0 -> (block) : 1))
#define WHOLE(block, slot) \
    ((slot) == 2 -> PAYLOAD(block, 2) : ((slot) == 1 -> PAYLOAD(2, 1) : \
    ((block) == 1 -> ((slot) == 0 -> PAYLOAD(1, 1) : PAYLOAD(1, 2)) : \
                     ((slot) == 3 -> PAYLOAD(2, 1) + PAYLOAD(2, 2) : \
                                     PAYLOAD(2, 0) + PAYLOAD(2, 1)))))
