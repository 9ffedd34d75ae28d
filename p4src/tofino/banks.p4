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

    FLAGS(state, claim,
        newer_ = 0;
        same_ = 0;
        if (SAME(value, meta)) {
            same_ = 1;
        }
        if (NEWER(value, meta)) {
            newer_ = 1;
            value.hi = meta.loop.tag_hi;
            value.lo = meta.loop.tag_lo;
        })
    ALU_16_0(counts, overwrite,
        value.hi = mark;
        value.lo = meta.contribution;)
    ALU_16_2(counts, contribute,
        value.hi = value.hi | mark;
        value.lo = value.lo |+| meta.contribution;
        one = value.lo;
        other = value.hi;)
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
        left = meta.slots.expected0 |-| meta.count;
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
        if (hdr.switchgnn.fragment >= FIRST_MAXIMUM) {
            if (meta.operation == operation_t.ADD) {
                meta.operation = operation_t.MAX;
            } else if (meta.operation == operation_t.ADD_TAKE) {
                meta.operation = operation_t.MAX_TAKE;
            }
        }
    }
}

// Two lanes, a and b, of group g.
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
        other = value.hi;)
#define KEEP(does, g, p) RUN_2(does##g##p, meta.index, unused, unused_too)
#define TAKE_PAIR(does, g, p, a, b) \
    RUN_2(does##g##p, meta.index, hdr.group##g.lane##a, hdr.group##g.lane##b)
#define KEEPING(does, g) \
    action keep_##does##g() { KEEP(does, g, 0) KEEP(does, g, 1) KEEP(does, g, 2) KEEP(does, g, 3) }
#define SETTING(g) \
    action keep_set##g() { \
        RUN_0(set##g##0, meta.index) \
        RUN_0(set##g##1, meta.index) \
        RUN_0(set##g##2, meta.index) \
        RUN_0(set##g##3, meta.index) \
    }
#define TAKING(does, g) \
    action take_##does##g() { \
        TAKE_PAIR(does, g, 0, 0, 1) \
        TAKE_PAIR(does, g, 1, 2, 3) \
        TAKE_PAIR(does, g, 2, 4, 5) \
        TAKE_PAIR(does, g, 3, 6, 7) \
    }
#define LANES_OF(g) \
    PAIR(g, 0, 0, 1) \
    PAIR(g, 1, 2, 3) \
    PAIR(g, 2, 4, 5) \
    PAIR(g, 3, 6, 7) \
    SETTING(g) \
    KEEPING(add, g) \
    KEEPING(larger, g) \
    TAKING(add, g) \
    TAKING(larger, g) \
    TAKING(read, g) \
    table lanes##g { \
        key = { meta.operation: exact; } \
        actions = { \
            keep_set##g; \
            keep_add##g; \
            keep_larger##g; \
            take_add##g; \
            take_larger##g; \
            take_read##g; \
            NoAction; \
        } \
        const default_action = NoAction; \
        const entries = { \
            operation_t.SET: keep_set##g(); \
            operation_t.ADD: keep_add##g(); \
            operation_t.MAX: keep_larger##g(); \
            operation_t.ADD_TAKE: take_add##g(); \
            operation_t.MAX_TAKE: take_larger##g(); \
            operation_t.TAKE: take_read##g(); \
        } \
    }
#define APPLY_LANES(g) \
    if (hdr.group##g.isValid()) { \
        lanes##g.apply(); \
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
