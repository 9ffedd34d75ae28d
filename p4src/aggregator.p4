// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// One bank of aggregators. A slot is a value of 32 lanes and a state: the tag
// of the block it serves and the number of contributions in it. The first
// contribution under a newer tag overwrites, so nobody has to clear a slot
// (invariant 4), and one under an older tag changes nothing (invariant 3).
#ifndef _AGGREGATOR_
#define _AGGREGATOR_

#include "headers.p4"
#include "metadata.p4"
#include "slots.p4"
#include "lanes.p4"
#include "sizes.p4"

control Aggregator(in headers_t hdr,
                   inout metadata_t meta,
                   in slot_t slot,
                   in count_t expected)
                  (bit<4> bank) {
    register<lanes_t>(SLOTS_PER_BANK) value;
    register<bit<96>>(SLOTS_PER_BANK) state;  // tag ++ count
    counter(SLOT_EVENTS, CounterType.packets) events;

    bit<32> index;
    bit<96> content;

    action look() {
        state.read(content, index);
        meta.contributions = meta.contributions + 1;
    }

    // What is read is what is added to and written: p4c would otherwise put the
    // whole sum into the write as well, and BMv2 would compute it twice.
    // The count saturates, so that a released slot stays released.
    action add() {
        value.read(meta.sum.lanes, index);
        meta.sum.lanes = PACKED_ADD(meta.sum.lanes, hdr.payload.lanes);
        value.write(index, meta.sum.lanes);
        meta.sum.count = content[15:0] |+| hdr.switchgnn.count;
        state.write(index, meta.tag ++ meta.sum.count);
    }

    action overwrite() {
        meta.sum.lanes = hdr.payload.lanes;
        value.write(index, hdr.payload.lanes);
        meta.sum.count = hdr.switchgnn.count;
        state.write(index, meta.tag ++ hdr.switchgnn.count);
    }

    apply {
        if (expected != 0 && meta.loop.next_bank <= bank && meta.completed == 0) {
            index = (bit<32>) slot;
            look();
            if (content > meta.newest) {
                events.count(SLOT_STALE);
            } else {
                if (content >= meta.oldest) {
                    add();
                } else {
                    overwrite();
                }
                if (meta.sum.count == expected) {
                    events.count(SLOT_COMPLETED);
                    meta.completed = 1;
                    meta.bank = bank;
                    meta.slot = slot;
                } else if (meta.sum.count > expected) {
                    if (meta.sum.count == RELEASED) {
                        events.count(SLOT_RELEASED);
                    } else {
                        events.count(SLOT_OVERFULL);
                    }
                }
            }
        }
    }
}

#endif
