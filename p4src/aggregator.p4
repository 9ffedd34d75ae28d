// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The states of the slots of one bank: the tag of the block that a slot serves and the number
// of contributions in it. The first contribution under a newer tag overwrites, so nobody has to
// clear a slot (invariant 4), and one under an older tag changes nothing (invariant 3).
// A slot of more than 32 lanes has its state in the first of its banks.
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
    register<bit<96>>(SLOTS_PER_BANK) state;  // tag ++ count
    counter(SLOT_EVENTS, CounterType.packets) events;

    bit<96> content;

    action look() {
        meta.index = (bit<32>) slot;
        state.read(content, meta.index);
        meta.contributions = meta.contributions + 1;
    }

    // The count saturates, so that a released slot stays released.
    action add() {
        meta.addition = ADD;
        meta.sum.count = content[15:0] |+| hdr.switchgnn.count;
        state.write(meta.index, meta.tag ++ meta.sum.count);
    }

    action overwrite() {
        meta.addition = OVERWRITE;
        meta.sum.count = hdr.switchgnn.count;
        state.write(meta.index, meta.tag ++ hdr.switchgnn.count);
    }

    action leave_alone() {
        meta.addition = NO_ADDITION;
    }

    apply {
        if (expected != 0 && meta.loop.next_bank <= bank && meta.completed == 0) {
            look();
            if (content > meta.newest) {
                leave_alone();
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
        } else {
            leave_alone();
        }
    }
}

#endif
