// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The aggregator memory: eight banks of slots, each bank touched at most once per pass. Here it
// is decided what is added; addition.p4 adds.
//
// A slot of more than 32, 64 or 128 lanes has two, four or eight banks side by side: its state is in
// the first one, and the others follow its decision.
#pragma once

#include "addition.p4"

// The states of the slots of one bank: the tag of the block that a slot serves, and its number
// of contributions. The first contribution under a newer tag overwrites, so no slot is ever
// cleared (invariant 4); one under an older tag changes nothing (invariant 3).
control Aggregator(in headers_t hdr,
                   inout metadata_t meta,
                   in slot_t slot,
                   in count_t expected)
                  (bit<4> bank) {
    register<bit<96>>(SLOTS_PER_BANK + REDUCE_SLOTS) state;  // tag ++ count
    counter(SLOT_EVENTS, CounterType.packets) events;

    bit<96> content;

    apply {
        meta.addition = NO_ADDITION;
        if (expected != 0 && meta.loop.next_bank <= bank && meta.completed == 0) {
            meta.index = meta.loop.first_slot + (bit<32>) slot;
            state.read(content, meta.index);
            meta.contributions = meta.contributions + 1;
            if (content > meta.newest) {
                events.count(SLOT_STALE);
            } else {
                if (content >= meta.oldest) {
                    // The count saturates, so that a released slot stays released.
                    meta.addition = ADD;
                    meta.sum.count = content[15:0] |+| hdr.switchgnn.count;
                } else {
                    meta.addition = OVERWRITE;
                    meta.sum.count = hdr.switchgnn.count;
                }
                state.write(meta.index, meta.tag ++ meta.sum.count);
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

// The bank holds the beginning of a slot.
#define BEGIN(b) \
    bank##b.apply(hdr, meta, meta.slots.slot##b, meta.slots.expected##b); \
    if (meta.addition != NO_ADDITION && hdr.chunk0.isValid()) { \
        lanes##b.apply(meta.addition, meta.index, hdr.chunk0.lanes, meta.sum.lanes.chunk0); \
    }
// The bank holds chunk c of a slot that begins in an earlier bank.
#define GO_ON(b, c) \
    if (meta.addition != NO_ADDITION && hdr.chunk##c.isValid()) { \
        lanes##b.apply(meta.addition, meta.index, hdr.chunk##c.lanes, \
                       meta.sum.lanes.chunk##c); \
    }
// The bank holds the beginning of a slot of up to `most` lanes, or chunk c of a wider one.
#define BEGIN_OR_GO_ON(b, most, c) \
    if (meta.loop.width <= most) { \
        BEGIN(b) \
    } else { \
        GO_ON(b, c) \
    }

// The first slot that completes ends the pass: its sum leaves, and the loop resumes with the
// next bank.
control Banks(in headers_t hdr, inout metadata_t meta) {
    Aggregator(0) bank0;
    Aggregator(1) bank1;
    Aggregator(2) bank2;
    Aggregator(3) bank3;
    Aggregator(4) bank4;
    Aggregator(5) bank5;
    Aggregator(6) bank6;
    Aggregator(7) bank7;

    Lanes() lanes0;
    Lanes() lanes1;
    Lanes() lanes2;
    Lanes() lanes3;
    Lanes() lanes4;
    Lanes() lanes5;
    Lanes() lanes6;
    Lanes() lanes7;

    // Cell n: passes that made n contributions.
    counter(BANKS + 1, CounterType.packets) passes;

    apply {
        meta.oldest = meta.tag ++ 16w0;
        meta.newest = meta.tag ++ 16w0xffff;
        BEGIN(0)
        BEGIN_OR_GO_ON(1, LANES_32, 1)
        BEGIN_OR_GO_ON(2, LANES_64, 2)
        if (meta.loop.width <= LANES_64) {
            BEGIN_OR_GO_ON(3, LANES_32, 1)
        } else {
            GO_ON(3, 3)
        }
        BEGIN_OR_GO_ON(4, LANES_128, 4)
        if (meta.loop.width <= LANES_128) {
            BEGIN_OR_GO_ON(5, LANES_32, 1)
        } else {
            GO_ON(5, 5)
        }
        if (meta.loop.width <= LANES_128) {
            BEGIN_OR_GO_ON(6, LANES_64, 2)
        } else {
            GO_ON(6, 6)
        }
        if (meta.loop.width <= LANES_64) {
            BEGIN_OR_GO_ON(7, LANES_32, 1)
        } else if (meta.loop.width <= LANES_128) {
            GO_ON(7, 3)
        } else {
            GO_ON(7, 7)
        }
        if (meta.adds == 1) {
            passes.count((bit<32>) meta.contributions);
        }
    }
}
