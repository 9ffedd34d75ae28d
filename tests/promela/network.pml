/* The network: for each kind of packet the set of those under way, one bit for each
 * possible packet. A set has no order, so every order of arrival is tried.
 *
 * `flying` packets arrive before anybody's timer fires. A `late` one was set aside:
 * it arrives at any later moment, after any number of timers, or never. What may go
 * wrong is bounded: LOSS packets are lost, LATE become late, and of REPEAT a copy stays
 * behind that is late. A packet that is sent while its equal is flying is one with it:
 * that both arrive is a REPEAT.
 *
 * A SUM does not carry its payload: that it is exact is asserted when it leaves, so
 * there is only one. A WAITING that says who is not done is left out: it changes nothing at a
 * worker. */

#ifndef LOSS
#define LOSS 0
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef REPEAT
#define REPEAT 0
#endif

#define BIT(number) (1 << (number))
#define HAS(set, number) (((set) >> (number)) & 1)

/* kind        identity of a packet; reduce.pml has kinds of its own */
#ifndef KINDS
#define FEATURE 0   /* FEATURE_ID: block, source */
#define LOOPING 1   /* FEATURE_ID: inside the switch, on its way to its second slot */
#define ACK     2   /* ACK_ID: block, worker, number accepted: 1 or 2 */
#define SUM     3   /* vertex; with BUNDLES a frame of one row, or BUNDLE_ID of two */
#define RECALL  4   /* vertex; with LEAF_SPINE and Resend: 4 + vertex */
#define MISSING 5   /* PAIR_ID: vertex, count */
#define FETCH   6   /* PAIR_ID: vertex, source */
#define RESENT  7   /* PAIR_ID: vertex, source; owner to switch to worker is one way */
#define DONE    8   /* PLACE_ID: tag, worker */
#define ADVANCE 9   /* PLACE_ID: tag, worker */
#define REFUSAL 10  /* PLACE_ID: tag, worker; an answer that ends the worker with an error */
#ifdef LEAF_SPINE
/* Between leaves and the spine. */
#define PART         11  /* FEATURE_ID: block, slot of the leaf; a partial sum on its way up */
#define UP_DONE      12  /* REPORT_ID: tag, leaf */
#define DOWN_ADVANCE 13  /* REPORT_ID: tag, leaf */
#define DOWN_RECALL  14  /* FEATURE_ID: block, slot of the leaf that is asked for its part */
#define DOWN_MISSING 15  /* PAIR_ID: vertex, count; with Resend */
#define DOWN_REFUSAL 16  /* REPORT_ID: tag, leaf */
#define KINDS 17
#else
#ifdef SECOND_PROCESS
#define SECOND_DONE 11  /* PLACE_ID: tag, worker; of a second process */
#define KINDS 12
#else
#define KINDS 11
#endif
#endif

#define FEATURE_ID(block, source) (4 * ((block) - 1) + (source))
#define ACK_ID(block, worker, number) (6 * ((block) - 1) + 2 * (worker) + (number) - 1)
#define PAIR_ID(vertex, other) (4 * (vertex) + (other))
#define PLACE_ID(tag, worker) (3 * (tag) + (worker))
#define REPORT_ID(tag, leaf) (2 * (tag) + (leaf))

#ifdef LEAF_SPINE
#define OTHERS_FLYING \
    (flying[11] | flying[12] | flying[13] | flying[14] | flying[15] | flying[16])
#else
#ifdef SECOND_PROCESS
#define OTHERS_FLYING flying[11]
#else
#define OTHERS_FLYING 0
#endif
#endif
#define QUIET (!(flying[0] | flying[1] | flying[2] | flying[3] | flying[4] | flying[5] \
               | flying[6] | flying[7] | flying[8] | flying[9] | flying[10] | OTHERS_FLYING))
#endif

int flying[KINDS];
int late[KINDS];
byte lost, delayed, repeated;

#define SEND(kind, id) flying[kind] = flying[kind] | BIT(id)
#define UNDER_WAY(kind) (flying[kind] | late[kind])

#define LAND(kind) flying[kind] = flying[kind] & ~BIT(id)
#define WITHDRAW(kind, ids) flying[kind] = flying[kind] & ~(ids); late[kind] = late[kind] & ~(ids)
#define ALL_TAGS(worker) (153391689 << (worker))

/* Takes any packet of this kind and lets it arrive, or not. Nothing repeats a packet
 * inside the switch. */
inline pick(kind) {
    do
    :: id < 31 && UNDER_WAY(kind) >> (id + 1) -> id++
    :: HAS(UNDER_WAY(kind), id) -> break
    od;
    if
    :: HAS(flying[kind], id) -> LAND(kind); arrives = true
    :: HAS(flying[kind], id) && lost < LOSS -> lost++; LAND(kind)
    :: HAS(flying[kind], id) && delayed < LATE && !HAS(late[kind], id) ->
        delayed++; LAND(kind); late[kind] = late[kind] | BIT(id)
    :: HAS(flying[kind], id) && repeated < REPEAT && kind != LOOPING ->
        repeated++; LAND(kind); late[kind] = late[kind] | BIT(id); arrives = true
    :: HAS(late[kind], id) -> late[kind] = late[kind] & ~BIT(id); arrives = true
    fi
}

/* One step of the network: a packet of this kind arrives `at_whom`, or does not. */
#define INSIDE(kind, what_happens) what_happens()

#define ARRIVAL(kind, at_whom, what_happens) \
    atomic { \
        UNDER_WAY(kind) -> \
        pick(kind); \
        if \
        :: arrives -> \
            d_step { \
                printf(#kind); printf(" %d arrives\n", id); \
                at_whom(kind, what_happens); withdraw_what_is_too_late(); arrives = false \
            } \
        :: else -> printf(#kind); printf(" %d is lost or late\n", id) \
        fi; \
        id = 0 \
    }
