// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The lanes of one bank. Aggregator has found out what happens to them.
#ifndef _LANES_
#define _LANES_

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

control Lanes(in addition_t addition, in bit<32> index, in lanes_t chunk, inout lanes_t sum) {
    register<lanes_t>(SLOTS_PER_BANK) value;

    // What is read is what is added to and written: p4c would otherwise put the
    // whole sum into the write as well, and BMv2 would compute it twice.
    action add() {
        value.read(sum, index);
        sum = PACKED_ADD(sum, chunk);
        value.write(index, sum);
    }

    action overwrite() {
        sum = chunk;
        value.write(index, chunk);
    }

    apply {
        if (addition == ADD) {
            add();
        } else {
            overwrite();
        }
    }
}

#endif
