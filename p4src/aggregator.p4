// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// One bank of aggregators. A slot is a value of 32 lanes and a state: the tag
// of the block it serves and the number of contributions in it. The first
// contribution under a newer tag overwrites, so nobody has to clear a slot
// (invariant 4), and one under an older tag changes nothing (invariant 3).
#ifndef _AGGREGATOR_
#define _AGGREGATOR_

#include "headers.p4"
#include "sizes.p4"

// The top bit of each of the 32 lanes, and the rest.
const bit<256> EIGHT_LANE_TOPS =
    0x80000000_80000000_80000000_80000000_80000000_80000000_80000000_80000000;
const lanes_t LANE_TOPS =
    EIGHT_LANE_TOPS ++ EIGHT_LANE_TOPS ++ EIGHT_LANE_TOPS ++ EIGHT_LANE_TOPS;
const lanes_t LANE_RESTS = ~LANE_TOPS;

// Adds each lane modulo 2^32: without its top bit no lane can carry into the
// next one, and the top bit of a sum is the exclusive or of what goes into it.
#define PACKED_ADD(a, b) \
    ((((a) & LANE_RESTS) + ((b) & LANE_RESTS)) ^ (((a) ^ (b)) & LANE_TOPS))

control Aggregator(in headers_t hdr,
                   inout metadata_t meta,
                   in slot_t slot,
                   in count_t expected)
                  (bit<4> bank) {
    register<lanes_t>(SLOTS_PER_BANK) value;
    register<bit<96>>(SLOTS_PER_BANK) state;  // tag ++ count
    counter(SLOT_EVENTS, CounterType.packets) events;

    bit<96> old_state;
    lanes_t old_value;
    lanes_t addend;
    count_t old_count;

    // One action, so that each register is read and written once per pass.
    action accumulate() {
        state.read(old_state, (bit<32>) slot);
        value.read(old_value, (bit<32>) slot);
        addend = old_state[95:16] == meta.tag ? old_value : 0;
        old_count = old_state[95:16] == meta.tag ? old_state[15:0] : 0;
        meta.sum = PACKED_ADD(addend, hdr.payload.lanes);
        meta.sum_count = old_count |+| hdr.switchgnn.count;
        state.write((bit<32>) slot,
            old_state[95:16] > meta.tag ? old_state : meta.tag ++ meta.sum_count);
        value.write((bit<32>) slot,
            old_state[95:16] > meta.tag ? old_value : meta.sum);
        meta.contributions = meta.contributions + 1;
    }

    apply {
        if (expected != 0 && meta.loop.next_bank <= bank && meta.completed == 0) {
            accumulate();
            if (old_state[95:16] > meta.tag) {
                events.count(SLOT_STALE);
            } else if (meta.sum_count == expected) {
                events.count(SLOT_COMPLETED);
                meta.completed = 1;
                meta.bank = bank;
                meta.slot = slot;
            } else if (meta.sum_count == RELEASED) {
                events.count(SLOT_RELEASED);
            } else if (meta.sum_count > expected) {
                events.count(SLOT_OVERFULL);
            }
        }
    }
}

#endif
