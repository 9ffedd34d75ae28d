// Sets of workers: those that are done with a tag, and the latest heartbeats of all.
#pragma once

#include "window.p4"

// Whether a set has no worker: it is too wide for a condition.
#define IF_EMPTY(name, set, then, otherwise) \
    table name { \
        key = { set: exact; } \
        actions = { then; otherwise; } \
        const default_action = otherwise; \
        SIZE(1) \
        const entries = { 0: then(); } \
    }

// First the cells of barriers, then those of all-reduces.
const bit<32> SETS = POOL_CELLS + ALL_REDUCE_SLOTS;
const bit<32> BEATS = JOB_CELLS + JOB_CELLS;

// The workers that are done with a tag, or have contributed to a fragment: 64 in each register.
#define HALF_OF_SET(name, hi_bits, lo_bits) \
    REGISTER(SETS, collected##name) \
    ALU_2(collected##name, add_to##name, \
        one = value.hi; \
        two = value.lo; \
        value.hi = value.hi | meta.worker_bit[hi_bits]; \
        value.lo = value.lo | meta.worker_bit[lo_bits];) \
    READ(collected##name, read##name) \
    ALU_0(collected##name, start##name, \
        value.hi = meta.worker_bit[hi_bits]; \
        value.lo = meta.worker_bit[lo_bits];)

// Adds the packet's worker, or only looks. A newer tag begins with an empty set.
control Collected(inout metadata_t meta) {
    HALF_OF_SET(_upper, 127:96, 95:64)
    HALF_OF_SET(_lower, 63:32, 31:0)

    action complete() { meta.complete = 1; }
    action repeat() { meta.repeated = 1; }

    IF_EMPTY(missing, meta.members, complete, NoAction)
    IF_EMPTY(added, meta.work.before, repeat, NoAction)

    action join() { meta.work.after = meta.work.before | meta.worker_bit; }
    action take() { meta.work.after = meta.work.before; }

    // Those that lack, and those that are new.
    action differ() {
        meta.members = meta.members ^ meta.work.after;
        meta.work.before = meta.work.before ^ meta.work.after;
    }

    apply {
        meta.work.before = 0;
        if (meta.work.adds == 0) {
            if (meta.work.same != 0) {
                RUN_2(read_upper, meta.work.cell, meta.work.before[127:96],
                      meta.work.before[95:64])
                RUN_2(read_lower, meta.work.cell, meta.work.before[63:32], meta.work.before[31:0])
            }
            take();
        } else {
            if (meta.work.same != 0) {
                RUN_2(add_to_upper, meta.work.cell, meta.work.before[127:96],
                      meta.work.before[95:64])
                RUN_2(add_to_lower, meta.work.cell, meta.work.before[63:32],
                      meta.work.before[31:0])
            } else if (meta.work.newer == 1) {
                RUN_0(start_upper, meta.work.cell)
                RUN_0(start_lower, meta.work.cell)
            }
            join();
        }
        differ();
        missing.apply();
        added.apply();
    }
}

// The latest heartbeats of all.
#define HALF_OF_BEATS(name, hi_bits, lo_bits) \
    REGISTER(BEATS, heartbeats##name) \
    ALU_2(heartbeats##name, raise##name, \
        value.hi = value.hi | meta.work.beats[hi_bits]; \
        value.lo = value.lo | meta.work.beats[lo_bits]; \
        one = value.hi; \
        two = value.lo;) \
    ALU_2(heartbeats##name, lower##name, \
        value.hi = value.hi & ~meta.work.beats[hi_bits]; \
        value.lo = value.lo & ~meta.work.beats[lo_bits]; \
        one = value.hi; \
        two = value.lo;)

// Of a worker, or of all below a leaf: a first pass raises some, and a later one lowers the others.
control Heartbeat(inout metadata_t meta) {
    HALF_OF_BEATS(_upper, 127:96, 95:64)
    HALF_OF_BEATS(_lower, 63:32, 31:0)

    apply {
        if (meta.work.first == 1) {
            RUN_2(raise_upper, meta.work.beat, meta.work.beats[127:96], meta.work.beats[95:64])
            RUN_2(raise_lower, meta.work.beat, meta.work.beats[63:32], meta.work.beats[31:0])
        } else {
            RUN_2(lower_upper, meta.work.beat, meta.work.beats[127:96], meta.work.beats[95:64])
            RUN_2(lower_lower, meta.work.beat, meta.work.beats[63:32], meta.work.beats[31:0])
        }
    }
}
