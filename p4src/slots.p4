// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What all kinds of banks share: the slots that an entry names, the events in a slot, and
// the addition of lanes.
#ifndef _SLOTS_
#define _SLOTS_

#include "headers.p4"

// The slots of one table entry, one per bank; expected 0 means none.
struct slots_t {
    slot_t  slot0;
    count_t expected0;
    slot_t  slot1;
    count_t expected1;
    slot_t  slot2;
    count_t expected2;
    slot_t  slot3;
    count_t expected3;
    slot_t  slot4;
    count_t expected4;
    slot_t  slot5;
    count_t expected5;
    slot_t  slot6;
    count_t expected6;
    slot_t  slot7;
    count_t expected7;
}

// What happens to the lanes of a slot.
typedef bit<2> addition_t;

// The count of a released slot. Counts saturate here, so that no later contribution can
// complete the slot.
const count_t RELEASED = 0xffff;

// Index of the counter `events` of a bank.
const bit<32> SLOT_COMPLETED = 0;
const bit<32> SLOT_STALE     = 1;  // the slot already belongs to a later block
const bit<32> SLOT_OVERFULL  = 2;  // more contributions than expected: never completes
const bit<32> SLOT_RELEASED  = 3;  // the worker sums this vertex itself
const bit<32> SLOT_EVENTS    = 4;

// The top bit of each of the 32 lanes of a bank, and the other bits.
#define EIGHT_LANE_TOPS \
    256w0x80000000_80000000_80000000_80000000_80000000_80000000_80000000_80000000
#define LANE_TOPS \
    (EIGHT_LANE_TOPS ++ EIGHT_LANE_TOPS ++ EIGHT_LANE_TOPS ++ EIGHT_LANE_TOPS)
#define LANE_RESTS (~LANE_TOPS)

// Adds each lane modulo 2^32: without its top bit no lane carries into the next one, and the
// top bit of a sum is the exclusive or of the top bits and the carry.
#define PACKED_ADD(a, b) \
    ((((a) & LANE_RESTS) + ((b) & LANE_RESTS)) ^ (((a) ^ (b)) & LANE_TOPS))

#endif
