// The aggregator memory: eight banks of slots, each bank touched at most once per pass.
//
// A slot of more than 32, 64 or 128 lanes has two, four or eight banks side by side: its state is in
// the first one.
//
// All of it is one action: in BMv2 a table without a key, as p4c makes of statements between
// conditions, takes as long as five steps of an action.
#pragma once

#include "addition.p4"

#define NAME(name) #name
// The states of the slots of one bank: the tag of the block that a slot serves, whether any
// contribution was marked, and their number; see EMPTY_OF. The first contribution under a newer tag overwrites, so no slot is ever
// cleared (invariant 4); one under an older tag changes nothing (invariant 3).
#define DECLARE_BANK(b) \
    @name(NAME(bank##b.state)) register<bit<96>>(SLOTS_PER_BANK + ALL_REDUCE_SLOTS) state##b; \
    @name(NAME(bank##b.events)) counter(SLOT_EVENTS, CounterType.packets) events##b; \
    @name(NAME(lanes##b.value)) register<lanes_t>(SLOTS_PER_BANK + ALL_REDUCE_SLOTS) value##b;

#define ADDEND_IF(c) \
    if (chunk == c && hdr.chunk##c.isValid()) { \
        addend = hdr.chunk##c.lanes; \
    } else
// Adds part p of a slot, or of its row of a bundle, to a bank. Read, combined and written through one
// variable: p4c would otherwise repeat the whole sum in the write, and
// BMv2 would compute it twice.
#define ADD_LANES(b, p, row) \
    addend = hdr.chunk##p.lanes; \
    if (row != 0) { \
        chunk = (row << meta.row_chunks) + p; \
        ADDEND_IF(1) ADDEND_IF(2) ADDEND_IF(3) ADDEND_IF(4) ADDEND_IF(5) ADDEND_IF(6) ADDEND_IF(7) {} \
    } \
    if (content < meta.oldest) { \
        total = addend; \
    } else { \
        value##b.read(total, index); \
        COMBINE(hdr.switchgnn.fragment, total, addend) \
    } \
    value##b.write(index, total); \
    if (meta.completed == 1) { \
        meta.sum.lanes.chunk##p = total; \
    }

// Part p of a slot or row, in bank b, and the parts after it; a row may have fewer than its slot.
#define ADD_PART(p, b, row, MORE) \
    if (meta.last_of_row >= p && hdr.chunk##p.isValid()) { \
        ADD_LANES(b, p, row) \
        MORE \
    }
#define ADD_2(c, row) ADD_PART(1, c, row, )
#define ADD_4(c, d, e, row) ADD_2(c, row) ADD_PART(2, d, row, ADD_PART(3, e, row, ))
#define ADD_8(row) \
    ADD_4(1, 2, 3, row) \
    ADD_PART(4, 4, row, ADD_PART(5, 5, row, ADD_PART(6, 6, row, ADD_PART(7, 7, row, ))))
#define MORE_0(row) ADD_8(row)
#define MORE_1(row)
#define MORE_2(row) ADD_2(3, row)
#define MORE_3(row)
#define MORE_4(row) ADD_4(5, 6, 7, row)
#define MORE_5(row)
#define MORE_6(row) ADD_2(7, row)
#define MORE_7(row)

// Adds to the slot that begins in bank b.
#define ADD_TO(b) \
    if (meta.slots.expected##b != 0 && meta.loop.next_bank <= b && meta.completed == 0 \
            && (meta.last_part & b) == 0 && hdr.chunk0.isValid()) { \
        index = (bit<32>) meta.slots.slot##b; \
        if (meta.loop.first_slot != 0) { \
            index = meta.loop.first_slot + index; \
        } \
        state##b.read(content, index); \
        meta.contributions = meta.contributions + 1; \
        if (content > meta.newest) { \
            events##b.count(SLOT_STALE); \
        } else { \
            COUNT(b) \
            ADD_LANES(b, 0, meta.slots.row##b) \
            MORE_##b(meta.slots.row##b) \
        } \
    }
// The count saturates, so that a released slot stays released.
#define COUNT(b) \
    if (content < meta.oldest) { \
        meta.sum.count = hdr.switchgnn.count; \
        meta.sum.ecn = hdr.switchgnn.ecn; \
    } else { \
        meta.sum.count = content[15:0] |+| hdr.switchgnn.count; \
        meta.sum.ecn = content[16:16] | hdr.switchgnn.ecn; \
    } \
    state##b.write(index, meta.oldest + (bit<96>) (meta.sum.ecn ++ meta.sum.count)); \
    if (meta.sum.count >= meta.slots.expected##b) { \
        if (meta.sum.count == meta.slots.expected##b) { \
            events##b.count(SLOT_COMPLETED); \
            meta.completed = 1; \
            meta.bank = b; \
            meta.slot = meta.slots.slot##b; \
        } else if (meta.sum.count == RELEASED) { \
            events##b.count(SLOT_RELEASED); \
        } else { \
            events##b.count(SLOT_OVERFULL); \
        } \
    }

// The first slot that completes ends the pass: its sum leaves, and the loop resumes with the
// next bank.
control Banks(in headers_t hdr, inout metadata_t meta) {
    EACH_BANK(DECLARE_BANK)

    // Of each job cell n: passes that made n contributions.
    counter(JOB_CELLS << PASS_BITS, CounterType.packets) passes;

    bit<32> index;
    bit<96> content;
    bit<3> chunk;
    lanes_t addend; lanes_t total;

    action add_to_slots() {
        EACH_BANK(ADD_TO)
        if (meta.adds == 1) {
            passes.count(meta.loop.first_passes + meta.contributions);
        }
    }

    apply { add_to_slots(); }
}
