// The aggregator memory: one slot of 32 lanes per pass. A stage has the pairs of registers of a
// group of 8 lanes.
#pragma once

#include "metadata.p4"

// Fragments from here on are maxima, as in ../addition.p4.
#define MAXIMA 256 &&& 9w256
const bit<32> SLOT_CELLS = SLOTS_PER_BANK + ALL_REDUCE_SLOTS;

// What the packet does with its slot in this pass.
control Use(in headers_t hdr, inout metadata_t meta) {
    // Of each worker, sums that it gave up to fetch their features.
    COUNTER(MAX_WORKERS, releases)
    // Of each job cell n: passes that made n contributions.
    COUNTER(JOB_CELLS << PASS_BITS, passes)

    bit<1> counts; bit<1> has_slot;
    index_t cell;

    action find_slot() {
        meta.index = meta.slots.slot0 + meta.loop.first_slot;
        has_slot = 0;
        counts = 0;
    }

    action refuse(outcome_t outcome) { meta.outcome = outcome; }

    action aggregate() {
        meta.outcome = AGGREGATED;
        meta.touches_slots = 1;
        counts = 1;
    }

    action go_on() {
        meta.touches_slots = 1;
        counts = 1;
    }

    action look() {
        meta.touches_slots = 1;
        meta.looks = 1;
        meta.contribution = 0;
    }

    action release() {
        meta.touches_slots = 1;
        meta.contribution = RELEASED;
    }

    table use {
        key = {
            meta.outcome: ternary; meta.loop.step: ternary; meta.newer: ternary;
            meta.same: ternary; meta.loop.look_again: ternary;
        }
        actions = { refuse; aggregate; go_on; look; release; NoAction; }
        const default_action = NoAction;
        SIZE(10)
        const entries = {
            (PENDING, step_t.FIRST, 1, _, _): aggregate();
            (PENDING, step_t.FIRST, _, 0, _): refuse(STALE);
            (PENDING, step_t.FIRST, _, _, _): refuse(DUPLICATE);
            (PENDING, step_t.HOP, _, _, _): go_on();
            (PENDING, step_t.HARVEST, _, _, _): look();
            (RECALLED, step_t.FIRST, _, _, _): look();
            (PASSED_ON, step_t.FIRST, _, _, 1): look();
            (REDUCE_ADDED, step_t.FIRST, _, _, _): go_on();
            (REDUCE_REPEATED, step_t.FIRST, _, _, _): look();
            (FETCHED, step_t.FIRST, _, _, _): release();
        }
    }

    JOIN_4(16, join_cell, cell, 7w0, meta.loop.cell[4:0], 3w0, has_slot)

    apply {
        find_slot();
        use.apply();
        if (meta.slots.expected0 != 0) {
            has_slot = 1;
        }
        join_cell();
        if (counts == 1) {
            COUNT_ONE(passes, cell)
        }
        if (meta.outcome == FETCHED) {
            COUNT_ONE(releases, meta.loop.worker)
        }
    }
}

// A source's contribution, a look, or a release: whether the slot is the packet's, and its count.
// The first contribution under a newer tag overwrites, so no slot is ever cleared (invariant 4);
// one under an older tag changes nothing (invariant 3).
control Slots(in headers_t hdr, inout metadata_t meta) {
    @name("bank0.state") REGISTER(SLOT_CELLS, state)
    REGISTER_16(SLOT_CELLS, counts)  // marks, contributions
    @name("bank0.events") COUNTER(SLOT_EVENTS, events)

    bit<32> first; bit<32> same;
    index_t event;
    count_t lacks; count_t over;

    CLAIM(state, claim)
    ALU_16_0(counts, restart,
        value.hi = meta.mark;
        value.lo = meta.contribution;)
    ALU_16_2(counts, add,
        value.hi = value.hi | meta.mark;
        value.lo = value.lo |+| meta.contribution;
        one = value.lo;
        two = value.hi;)

    action overwrite() { RUN_0(restart, meta.index) }
    action contribute() { RUN_2(add, meta.index, meta.count, meta.mark) }

    action leave() {
        meta.count = 0;
        meta.mark = 0;
    }

    table counted {
        key = { first: ternary; same: ternary; }
        actions = { overwrite; contribute; leave; }
        const default_action = leave;
        SIZE(3)
        const entries = {
            (1, _): overwrite();
            (_, 0): leave();
            (_, _): contribute();
        }
    }

    action prepare() { meta.count = meta.contribution; }

    action measure() {
        lacks = meta.slots.expected0 |-| meta.count;
        over = meta.count |-| meta.slots.expected0;
    }

    action operate(operation_t operation, index_t kind) {
        meta.operation = operation;
        event = kind;
    }

    // A sum that completes before the last hop is harvested.
    action complete(operation_t operation, bit<1> takes) {
        meta.operation = operation;
        meta.completed = 1;
        meta.takes = takes;
        meta.slot = meta.slots.slot0;
        event = (index_t) SLOT_COMPLETED;
    }

    table operation {
        key = {
            meta.count: ternary; lacks: ternary; over: ternary; first: ternary; same: ternary;
            meta.looks: ternary; meta.last_hop: ternary; hdr.switchgnn.fragment: ternary;
        }
        actions = { operate; complete; }
        const default_action = operate(operation_t.ADD, (index_t) SLOT_EVENTS);
        SIZE(16)
        const entries = {
            (RELEASED, _, _, _, _, _, _, _):
                operate(operation_t.NOTHING, (index_t) SLOT_RELEASED);
            (_, 0, 0, 1, _, _, 1, _): complete(operation_t.SET, 1);
            (_, 0, 0, 1, _, _, _, _): complete(operation_t.SET, 0);
            (_, 0, 0, _, _, 1, _, _): complete(operation_t.TAKE, 1);
            (_, 0, 0, _, _, _, 1, MAXIMA): complete(operation_t.MAX_TAKE, 1);
            (_, 0, 0, _, _, _, 1, _): complete(operation_t.ADD_TAKE, 1);
            (_, 0, 0, _, _, _, _, MAXIMA): complete(operation_t.MAX, 0);
            (_, 0, 0, _, _, _, _, _): complete(operation_t.ADD, 0);
            (_, 0, _, 1, _, _, _, _): operate(operation_t.SET, (index_t) SLOT_OVERFULL);
            (_, 0, _, _, _, _, _, _): operate(operation_t.NOTHING, (index_t) SLOT_OVERFULL);
            (_, _, _, 1, _, _, _, _): operate(operation_t.SET, (index_t) SLOT_EVENTS);
            (_, _, _, _, 0, _, _, _): operate(operation_t.NOTHING, (index_t) SLOT_STALE);
            (_, _, _, _, _, 1, _, _): operate(operation_t.NOTHING, (index_t) SLOT_EVENTS);
            (_, _, _, _, _, _, _, MAXIMA): operate(operation_t.MAX, (index_t) SLOT_EVENTS);
        }
    }

    apply {
        prepare();
        RUN_2(claim, meta.index, first, same)
        counted.apply();
        measure();
        operation.apply();
        if (event != (index_t) SLOT_EVENTS && meta.loop.step != step_t.HARVEST) {
            COUNT_ONE(events, event)
        }
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
        two = value.hi;) \
    ALU_2(lanes##g##p, larger##g##p, \
        if (value.lo < hdr.group##g.lane##a) { \
            value.lo = hdr.group##g.lane##a; \
        } \
        if (value.hi < hdr.group##g.lane##b) { \
            value.hi = hdr.group##g.lane##b; \
        } \
        one = value.lo; \
        two = value.hi;) \
    ALU_2(lanes##g##p, read##g##p, \
        one = value.lo; \
        two = value.hi;) \
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
        SIZE(6) \
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
    PAIR(g, 0, 0, 1) PAIR(g, 1, 2, 3) PAIR(g, 2, 4, 5) PAIR(g, 3, 6, 7)
#define APPLY_LANES(g) \
    if (hdr.group##g.isValid()) { \
        pair##g##0.apply(); pair##g##1.apply(); \
        pair##g##2.apply(); pair##g##3.apply(); \
    }

// What the packet's lanes do in its slot. A sum that leaves takes their place.
control Lanes(inout headers_t hdr, in metadata_t meta) {
    bit<32> unused; bit<32> unused_too;

    EACH_GROUP(LANES_OF)

    apply {
        EACH_GROUP(APPLY_LANES)
    }
}
