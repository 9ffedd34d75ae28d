// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What all kinds of banks share: the slots that an entry names, what happens in a slot, and how
// lanes are added.
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

// The count of a released slot. Counts add up to this and no further, so that
// nothing that still arrives can complete the slot.
const count_t RELEASED = 0xffff;

// What became of a contribution in its slot, beyond being added; index of the
// counter `events` of a bank.
const bit<32> SLOT_COMPLETED = 0;
const bit<32> SLOT_STALE     = 1;  // the slot belongs to a later block already
const bit<32> SLOT_OVERFULL  = 2;  // more contributions than expected: never completes
const bit<32> SLOT_RELEASED  = 3;  // came to a slot whose vertex is summed by its worker
const bit<32> SLOT_EVENTS    = 4;

#endif
