/* bundle.p4: with BUNDLES=n, frames of n rows, a complete sum waits on the shelf of its worker until a
 * frame is full or holds the last sum of the block. It stays in its slot, too, so a recalled sum
 * leaves alone. Only worker 0 awaits sums, two in each block (plan.pml). */

#define BUNDLE_ID(block) (VERTICES + (block) - 1)
/* The sums in a frame: both of a block in a bundle. */
#define FIRST_IN(sum) ((sum) < VERTICES -> (sum) : 2 * ((sum) - VERTICES))
#define LAST_IN(sum) (FIRST_IN(sum) + ((sum) >= VERTICES))

#ifdef BUNDLES
#ifndef MISTAKE
#define MISTAKE 0
#endif
#define SHELF_KEPT        1   /* a new tag does not empty the shelf */
#define ONE_SHELF         2   /* both pools have the same shelf */
#define LAST_WAITS        3   /* the last sum of a block does not take the others along */
#define RECALLED_TO_SHELF 4   /* a recalled sum goes to the shelf */
#define NOT_ALONE         5   /* a recall of a sum on the shelf is dropped */
#define NONE_AFTER_FETCH  6   /* none, but asserts that no bundle has a sum that is being fetched */

byte shelf_tag[POOLS], filled[POOLS];   /* the number of sums that are complete under this tag */
byte waiting[POOLS];                    /* the sums of the last frame */

/* Not in the switch, only for assertions: vertices that were put on a shelf since the last restart. */
byte shelved;

#define SHELF (MISTAKE == ONE_SHELF -> 0 : POOL(TAG(block)))
#define IS_OF_SHELF (MISTAKE == SHELF_KEPT || shelf_tag[pool] == TAGGED_AS(block))

inline completed() {
    assert_sum();
    assert(!HAS(shelved, VERTEX(block, slot)));    /* a sum leaves its shelf once */
    shelved = shelved | BIT(VERTEX(block, slot));
    pool = SHELF;
    number = (IS_OF_SHELF -> filled[pool] : 0);
    waiting[pool] = (number % BUNDLES -> waiting[pool] : 0) | BIT(VERTEX(block, slot));
    shelf_tag[pool] = TAGGED_AS(block); filled[pool] = number + 1;
    if
    :: filled[pool] % BUNDLES == 0 || (filled[pool] == 2 && MISTAKE != LAST_WAITS) ->
        assert(waiting[pool] == AWAITS(0, block));    /* each once, and none of another block */
        assert((waiting[pool] & fetched) == 0 || MISTAKE != NONE_AFTER_FETCH);
        SEND(SUM, BUNDLE_ID(block))
    :: else
    fi
}

inline recalled() {
    if
    :: MISTAKE == NOT_ALONE && HAS(waiting[SHELF], vertex)
    :: MISTAKE == RECALLED_TO_SHELF -> completed()
    :: else -> send_sum()
    fi
}

inline forget_shelf() {
    shelf_tag[pool] = 0; filled[pool] = 0; waiting[pool] = 0; shelved = 0
}

/* Every sum leaves its shelf unless something has gone wrong. After a void round it may not: what is still
 * in the switch of that round empties the shelf. */
inline assert_recall_is_needed() {
    assert(lost + delayed + repeated > 0 || restarted || second || FOLLOWS_VOID(tag))
}
#else
#define recalled send_sum
#define forget_shelf() skip
#define assert_recall_is_needed() skip
#endif
