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
                   in count_t expected,
                   in bit<3> row)
                  (bit<4> bank) {
    register<bit<96>>(SLOTS_PER_BANK + REDUCE_SLOTS) state;  // tag ++ count
    counter(SLOT_EVENTS, CounterType.packets) events;

    bit<96> content;

    apply {
        meta.addition = NO_ADDITION;
        if (expected != 0 && meta.loop.next_bank <= bank && meta.completed == 0) {
            meta.index = meta.loop.first_slot + (bit<32>) slot;
            meta.row = row;
            state.read(content, meta.index);
            meta.contributions = meta.contributions + 1;
            if (content > meta.newest) {
                events.count(SLOT_STALE);
            } else {
                if (content >= meta.oldest) {
                    // The count saturates, so that a released slot stays released.
                    meta.addition = hdr.switchgnn.fragment[8:8] == 1 ? MAXIMIZE : ADD;
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

#define ADDEND(c) \
    if (hdr.chunk##c.isValid()) { \
        meta.addend = hdr.chunk##c.lanes; \
    }
#define ADDEND_IF(c) \
    if (chunk == c) { \
        ADDEND(c) \
    } else

// The chunk of the packet that a bank adds.
control Addend(in headers_t hdr, inout metadata_t meta) {
    bit<3> chunk;

    apply {
        chunk = (meta.row << meta.row_chunks) + meta.part;
        BUT_THE_LAST_BANK(ADDEND_IF) {
            ADDEND(7)
        }
    }
}

// Keeps a chunk of the sum of the slot that is complete: bank b may have part b of it, or one with a
// lower number if slots are narrower.
#define KEEP(c) meta.sum.lanes.chunk##c = meta.total;
#define KEEP_IF(c) \
    if (meta.part == c) { \
        KEEP(c) \
    } else
#define KEEP_0 { KEEP(0) }
#define KEEP_1 KEEP_IF(1) KEEP_0
#define KEEP_2 KEEP_IF(2) KEEP_0
#define KEEP_3 KEEP_IF(3) KEEP_IF(1) KEEP_0
#define KEEP_4 KEEP_IF(4) KEEP_0
#define KEEP_5 KEEP_IF(5) KEEP_IF(1) KEEP_0
#define KEEP_6 KEEP_IF(6) KEEP_IF(2) KEEP_0
#define KEEP_7 KEEP_IF(7) KEEP_IF(3) KEEP_IF(1) KEEP_0

#define AGGREGATOR(b) Aggregator(b) bank##b;
#define LANES(b) Lanes() lanes##b;
// A bank holds the beginning of a slot, or a later part of one that begins in an earlier bank.
#define ADD_TO(b) \
    meta.part = meta.last_part & b; \
    if (meta.part == 0) { \
        bank##b.apply(hdr, meta, meta.slots.slot##b, meta.slots.expected##b, meta.slots.row##b); \
    } \
    if (meta.addition != NO_ADDITION && meta.part <= meta.last_of_row) { \
        addend.apply(hdr, meta); \
        lanes##b.apply(meta); \
        if (meta.completed == 1) { \
            KEEP_##b \
        } \
    }

// The first slot that completes ends the pass: its sum leaves, and the loop resumes with the
// next bank.
control Banks(in headers_t hdr, inout metadata_t meta) {
    EACH_BANK(AGGREGATOR)
    EACH_BANK(LANES)

    // Cell n: passes that made n contributions.
    counter(BANKS + 1, CounterType.packets) passes;

    Addend() addend;

    apply {
        meta.oldest = meta.tag ++ 16w0;
        meta.newest = meta.tag ++ 16w0xffff;
        EACH_BANK(ADD_TO)
        if (meta.adds == 1) {
            passes.count((bit<32>) meta.contributions);
        }
    }
}
