// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The lanes of one bank. Aggregator has found out what happens to them.
#ifndef _LANES_
#define _LANES_

#include "headers.p4"
#include "sizes.p4"
#include "slots.p4"
#include "packed_add.p4"

const addition_t NO_ADDITION = 0;
const addition_t ADD = 1;
const addition_t OVERWRITE = 2;

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
