// Sets of workers: those that are done with a tag, and the latest heartbeats of all.
#pragma once

#include "window.p4"

// Whether a set has no worker: it is too wide for a condition.
#define IF_EMPTY(name, set, then, otherwise) \
    table name { \
        key = { set: exact; } \
        actions = { \
            then; \
            otherwise; \
        } \
        const default_action = otherwise; \
        SIZE(1) \
        const entries = { 0: then(); } \
    }

// The workers that are done with a tag: 64 in each register.
#define HALF_OF_SET(name, hi_bits, lo_bits) \
    REGISTER(POOL_CELLS, collected##name) \
    ALU_2(collected##name, add_to##name, \
        one = value.hi; \
        two = value.lo; \
        value.hi = value.hi | hdr.done.worker_bit[hi_bits]; \
        value.lo = value.lo | hdr.done.worker_bit[lo_bits];) \
    ALU_0(collected##name, start##name, \
        value.hi = hdr.done.worker_bit[hi_bits]; \
        value.lo = hdr.done.worker_bit[lo_bits];)

control Collected(in headers_t hdr, inout metadata_t meta, in bit<32> newer, in bit<32> same) {
    HALF_OF_SET(_upper, 127:96, 95:64)
    HALF_OF_SET(_lower, 63:32, 31:0)

    action complete() { meta.complete = 1; }

    action repeat() { meta.outcome = DONE_REPEATED; }
    action collect() { meta.outcome = DONE_COLLECTED; }

    IF_EMPTY(missing, meta.work.lacks, complete, NoAction)
    IF_EMPTY(added, meta.work.before, repeat, collect)

    action join() { meta.work.after = meta.work.before | hdr.done.worker_bit; }

    // Those that lack, and those that are new.
    action differ() {
        meta.work.lacks = meta.work.after ^ hdr.done.members;
        meta.work.before = meta.work.before ^ meta.work.after;
    }

    apply {
        meta.work.before = 0;
        if (same != 0) {
            RUN_2(add_to_upper, meta.loop.pool, meta.work.before[127:96], meta.work.before[95:64])
            RUN_2(add_to_lower, meta.loop.pool, meta.work.before[63:32], meta.work.before[31:0])
        } else if (newer == 1) {
            RUN_0(start_upper, meta.loop.pool)
            RUN_0(start_lower, meta.loop.pool)
        }
        join();
        differ();
        missing.apply();
        added.apply();
    }
}

// The latest heartbeats of all.
#define HALF_OF_BEATS(name, hi_bits, lo_bits) \
    REGISTER(JOB_CELLS, heartbeats##name) \
    ALU_2(heartbeats##name, raise##name, \
        value.hi = value.hi | those[hi_bits]; \
        value.lo = value.lo | those[lo_bits]; \
        one = value.hi; \
        two = value.lo;) \
    ALU_2(heartbeats##name, lower##name, \
        value.hi = value.hi & ~those[hi_bits]; \
        value.lo = value.lo & ~those[lo_bits]; \
        one = value.hi; \
        two = value.lo;)

// Of a worker, or of all below a leaf: FIRST raises some, and a later pass lowers the others.
control Heartbeat(in headers_t hdr, inout metadata_t meta) {
    worker_set_t those;

    HALF_OF_BEATS(_upper, 127:96, 95:64)
    HALF_OF_BEATS(_lower, 63:32, 31:0)

    action find_raised() { those = hdr.done.worker_bit & hdr.barrier.workers; }
    action find_lowered() { those = hdr.done.worker_bit & ~hdr.barrier.workers; }

    apply {
        if (meta.loop.step == step_t.FIRST) {
            find_raised();
            RUN_2(raise_upper, meta.loop.cell, meta.work.beats[127:96], meta.work.beats[95:64])
            RUN_2(raise_lower, meta.loop.cell, meta.work.beats[63:32], meta.work.beats[31:0])
        } else {
            find_lowered();
            RUN_2(lower_upper, meta.loop.cell, meta.work.beats[127:96], meta.work.beats[95:64])
            RUN_2(lower_lower, meta.loop.cell, meta.work.beats[63:32], meta.work.beats[31:0])
        }
    }
}
