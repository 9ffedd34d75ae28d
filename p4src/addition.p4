// The addition of features: 32 lanes of a bank at once.
#pragma once

#include "metadata.p4"

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

#ifndef STRAWMAN
// What happens to the lanes of a slot. The strawman's banks keep theirs themselves.
const addition_t NO_ADDITION = 0;
const addition_t ADD = 1;
const addition_t OVERWRITE = 2;

// The lanes of one bank; Aggregator has chosen the addition.
control Lanes(inout metadata_t meta) {
    register<lanes_t>(SLOTS_PER_BANK + REDUCE_SLOTS) value;

    // Read, added and written through one variable: p4c would otherwise repeat the whole sum
    // in the write, and BMv2 would compute it twice.
    action add() {
        value.read(meta.total, meta.index);
        meta.total = PACKED_ADD(meta.total, meta.addend);
        value.write(meta.index, meta.total);
    }

    apply {
        if (meta.addition == ADD) {
            add();
        } else {
            meta.total = meta.addend;
            value.write(meta.index, meta.addend);
        }
    }
}
#endif
