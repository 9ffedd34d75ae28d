// The aggregator memory: one slot of 64 lanes per pass. A stage has the pairs of registers of a
// group of 8 lanes.
#pragma once

#include "metadata.p4"

// Fragments from here on are maxima, as in ../addition.p4.
const bit<9> FIRST_MAXIMUM = 256;
const bit<32> SLOT_CELLS = SLOTS_PER_BANK + ALL_REDUCE_SLOTS;

// A source's contribution, a look, or a release: whether the slot is the packet's, and its count.
// The first contribution under a newer tag overwrites, so no slot is ever cleared (invariant 4);
// one under an older tag changes nothing (invariant 3).
control Slots(in headers_t hdr, inout metadata_t meta) {
    @name("bank0.state") REGISTER(SLOT_CELLS, state)
    REGISTER_16(SLOT_CELLS, counts)  // marks, contributions
    @name("bank0.events") COUNTER(SLOT_EVENTS, events)

    flag_t first;
    flag_t same;
    bit<16> mark;
    index_t event;
    bit<16> left;

    CLAIM(state, claim)
    ALU_16_0(counts, overwrite,
        value.hi = mark;
        value.lo = meta.contribution;)
    ALU_16_2(counts, contribute,
        value.hi = value.hi | mark;
        value.lo = value.lo |+| meta.contribution;
        one = value.lo;
        other = value.hi;)
    action take_larger() { meta.operation = operation_t.MAX; }
    action send_larger() { meta.operation = operation_t.MAX_TAKE; }

    table maximum {
        key = {
            hdr.switchgnn.fragment: ternary;
            meta.operation:         ternary;
        }
        actions = {
            take_larger;
            send_larger;
            NoAction;
        }
        const default_action = NoAction;
        const entries = {
            (FIRST_MAXIMUM &&& FIRST_MAXIMUM, operation_t.ADD &&& 3w7): take_larger();
            (FIRST_MAXIMUM &&& FIRST_MAXIMUM, operation_t.ADD_TAKE &&& 3w7): send_larger();
        }
    }

    action measure() { left = meta.slots.expected0 |-| meta.count; }

    apply {
        mark = 0;
        if (hdr.switchgnn.ecn == 1) {
            mark = 1;
        }
        if (meta.looks == 1) {
            meta.contribution = 0;
        }
        RUN_2(claim, meta.index, first, same)
        event = (index_t) SLOT_EVENTS;
        meta.count = 0;
        meta.mark = 0;
        if (same == 1) {
            RUN_2(contribute, meta.index, meta.count, meta.mark)
            if (meta.looks == 0) {
                meta.operation = operation_t.ADD;
            }
        } else if (first == 1) {
            RUN_0(overwrite, meta.index)
            meta.count = meta.contribution;
            meta.mark = mark;
            meta.operation = operation_t.SET;
        } else {
            event = (index_t) SLOT_STALE;
        }
        measure();
        if (meta.count == RELEASED) {
            event = (index_t) SLOT_RELEASED;
        } else if (meta.count == meta.slots.expected0) {
            event = (index_t) SLOT_COMPLETED;
            meta.completed = 1;
            meta.slot = meta.slots.slot0;
            // A sum that completes before the last hop is harvested.
            if (meta.looks == 1) {
                meta.takes = 1;
                if (meta.operation == operation_t.NOTHING) {
                    meta.operation = operation_t.TAKE;
                }
            } else if (meta.last_hop == 1) {
                meta.takes = 1;
                if (meta.operation == operation_t.ADD) {
                    meta.operation = operation_t.ADD_TAKE;
                }
            }
        } else if (left == 0) {
            event = (index_t) SLOT_OVERFULL;
        }
        if (event != (index_t) SLOT_EVENTS && meta.loop.step != step_t.HARVEST) {
            COUNT_ONE(events, event)
        }
        maximum.apply();
    }
}

// Two lanes, a and b, of group g: a stateful ALU and its table.
#define PAIR(g, p, a, b) \
    REGISTER(SLOT_CELLS, lanes##g##p) \
    ALU_0(lanes##g##p, set##g##p, \
        value.lo = hdr.group##g.lane##a; \
        value.hi = hdr.group##g.lane##b;) \
    ALU_2(lanes##g##p, add##g##p, \
        value.lo = value.lo + hdr.group##g.lane##a; \
        value.hi = value.hi + hdr.group##g.lane##b; \
        one = value.lo; \
        other = value.hi;) \
    ALU_2(lanes##g##p, larger##g##p, \
        if (value.lo < hdr.group##g.lane##a) { \
            value.lo = hdr.group##g.lane##a; \
        } \
        if (value.hi < hdr.group##g.lane##b) { \
            value.hi = hdr.group##g.lane##b; \
        } \
        one = value.lo; \
        other = value.hi;) \
    ALU_2(lanes##g##p, read##g##p, \
        one = value.lo; \
        other = value.hi;) \
    action keep_set##g##p() { RUN_0(set##g##p, meta.index) } \
    action keep_add##g##p() { RUN_2(add##g##p, meta.index, unused, unused_too) } \
    action keep_larger##g##p() { RUN_2(larger##g##p, meta.index, unused, unused_too) } \
    action take_add##g##p() { \
        RUN_2(add##g##p, meta.index, hdr.group##g.lane##a, hdr.group##g.lane##b) \
    } \
    action take_larger##g##p() { \
        RUN_2(larger##g##p, meta.index, hdr.group##g.lane##a, hdr.group##g.lane##b) \
    } \
    action take_read##g##p() { \
        RUN_2(read##g##p, meta.index, hdr.group##g.lane##a, hdr.group##g.lane##b) \
    } \
    table pair##g##p { \
        key = { meta.operation: exact; } \
        actions = { \
            keep_set##g##p; \
            keep_add##g##p; \
            keep_larger##g##p; \
            take_add##g##p; \
            take_larger##g##p; \
            take_read##g##p; \
            NoAction; \
        } \
        const default_action = NoAction; \
        const entries = { \
            operation_t.SET: keep_set##g##p(); \
            operation_t.ADD: keep_add##g##p(); \
            operation_t.MAX: keep_larger##g##p(); \
            operation_t.ADD_TAKE: take_add##g##p(); \
            operation_t.MAX_TAKE: take_larger##g##p(); \
            operation_t.TAKE: take_read##g##p(); \
        } \
    }
#define LANES_OF(g) \
    PAIR(g, 0, 0, 1) \
    PAIR(g, 1, 2, 3) \
    PAIR(g, 2, 4, 5) \
    PAIR(g, 3, 6, 7)
#define APPLY_LANES(g) \
    if (hdr.group##g.isValid()) { \
        pair##g##0.apply(); \
        pair##g##1.apply(); \
        pair##g##2.apply(); \
        pair##g##3.apply(); \
    }

// What the packet's lanes do in its slot. A sum that leaves takes their place.
control Lanes(inout headers_t hdr, in metadata_t meta) {
    bit<32> unused;
    bit<32> unused_too;

    EACH_GROUP(LANES_OF)

    apply {
        EACH_GROUP(APPLY_LANES)
    }
}
