/* SPDX-FileCopyrightText: 2026 The SwitchGNN authors */
/* SPDX-License-Identifier: Apache-2.0 */

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
 * there is only one. WAITING is left out, it changes nothing at a worker. */

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

/* kind        identity of a packet */
#define FEATURE 0   /* FEATURE_ID: block, source */
#define LOOPING 1   /* FEATURE_ID: inside the switch, on its way to its second slot */
#define ACK     2   /* ACK_ID: block, worker, number accepted */
#define SUM     3   /* vertex */
#define RECALL  4   /* vertex; with LEAF_SPINE and Resend: 4 + vertex */
#define MISSING 5   /* PAIR_ID: vertex, count */
#define FETCH   6   /* PAIR_ID: vertex, source */
#define RESENT  7   /* PAIR_ID: vertex, source; owner to switch to worker is one way */
#define DONE    8   /* PLACE_ID: tag, worker */
#define ADVANCE 9   /* PLACE_ID: tag, worker */
#ifdef LEAF_SPINE
/* Between leaves and the spine. */
#define PART         10  /* FEATURE_ID: block, slot of the leaf; a partial sum on its way up */
#define UP_DONE      11  /* REPORT_ID: tag, leaf */
#define DOWN_ADVANCE 12  /* REPORT_ID: tag, leaf */
#define DOWN_RECALL  13  /* FEATURE_ID: block, slot of the leaf that is asked for its part */
#define DOWN_MISSING 14  /* PAIR_ID: vertex, count; with Resend */
#define KINDS 15
#else
#define KINDS 10
#endif

#define FEATURE_ID(block, source) (4 * ((block) - 1) + (source))
#define ACK_ID(block, worker, number) (9 * ((block) - 1) + 3 * (worker) + (number))
#define PAIR_ID(vertex, other) (4 * (vertex) + (other))
#define PLACE_ID(tag, worker) (3 * (tag) + (worker))
#define REPORT_ID(tag, leaf) (2 * (tag) + (leaf))

int flying[KINDS];
int late[KINDS];
byte lost, delayed, repeated;

#define SEND(kind, id) flying[kind] = flying[kind] | BIT(id)
#define UNDER_WAY(kind) (flying[kind] | late[kind])
#ifdef LEAF_SPINE
#define FLYING_ABOVE (flying[10] | flying[11] | flying[12] | flying[13] | flying[14])
#else
#define FLYING_ABOVE 0
#endif
#define QUIET (!(flying[0] | flying[1] | flying[2] | flying[3] | flying[4] | flying[5] \
               | flying[6] | flying[7] | flying[8] | flying[9] | FLYING_ABOVE))

#define LAND(kind) flying[kind] = flying[kind] & ~BIT(id)

/* Takes any packet of this kind and lets it arrive, or not. Nothing repeats a packet
 * inside the switch. */
inline pick(kind) {
    do
    :: UNDER_WAY(kind) >> (id + 1) -> id++
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
