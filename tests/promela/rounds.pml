/* SPDX-FileCopyrightText: 2026 The SwitchGNN authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Tags and blocks. Both are numbered on, over rounds and sessions, as the tags of
 * docs/protocol.md are: the larger number is the later one. With ROUNDS=2 of two blocks
 *
 *   tag     0        1  2  3        4  5  6
 *           opening        opening        the opening after the last round
 *   block            1  2           3  4
 *
 * NO_BLOCKS has a closing in place of blocks, ONE_BLOCK one block in each round. With NEW_SESSION
 * there are two sessions of so many rounds. Nobody is told to leave the last opening of a
 * session: there the model ends. */

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
#define TAGS_OF_A_ROUND 1
#else
#define TAGS_OF_A_ROUND 2
#endif
#else
#ifdef ONE_BLOCK
#define BLOCKS 1
#else
#define BLOCKS 2
#endif
#define TAGS_OF_A_ROUND (1 + BLOCKS)
#endif

#define BLOCKS_OF_A_SESSION (ROUNDS * BLOCKS)
#define TAGS_OF_A_SESSION (ROUNDS * TAGS_OF_A_ROUND + 1)
#define VERTICES (2 * SESSIONS * BLOCKS_OF_A_SESSION)

/* Sets of packets are the bits of an int. */
#if SESSIONS * BLOCKS_OF_A_SESSION > 4 || SESSIONS * TAGS_OF_A_SESSION > 10
#error "More blocks or tags than an int has bits for."
#endif
#if defined LEAF_SPINE && (defined NEW_SESSION || defined ONE_BLOCK || defined SECOND_PROCESS)
#error "With leaves and a spine there is one session, of two blocks or of none."
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
#define IS_LAST(tag) (IN_SESSION(tag) == TAGS_OF_A_SESSION - 1)
#define IS_OPENING(tag) (IN_SESSION(tag) % TAGS_OF_A_ROUND == 0)
/* The opening of its round. */
#define OPENING_OF(tag) ((tag) - IN_SESSION(tag) % TAGS_OF_A_ROUND)

/* The tag of a block, and the block of a tag: 0 where it has none. */
#define TAG(block) \
    (FIRST_TAG(((block) - 1) / BLOCKS_OF_A_SESSION) + 1 + ((block) - 1) % BLOCKS \
     + TAGS_OF_A_ROUND * (((block) - 1) % BLOCKS_OF_A_SESSION / BLOCKS))
#ifdef NO_BLOCKS
#define BLOCK_AT(tag) 0
#else
#define BLOCK_AT(tag) \
    (IS_OPENING(tag) -> 0 : SESSION_OF(tag) * BLOCKS_OF_A_SESSION \
     + IN_SESSION(tag) / TAGS_OF_A_ROUND * BLOCKS + IN_SESSION(tag) % TAGS_OF_A_ROUND)
#endif
