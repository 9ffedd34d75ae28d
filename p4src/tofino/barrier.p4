// The block barrier, and the window of tags that may pass; as ../barrier.p4, for one switch. A `done`
// takes up to three passes: FIRST only reads what it is compared with, COLLECT adds its worker, and
// MOVE, for the last one, moves the window. Passes of two `done` of a tag may alternate: sets and
// magnitudes only grow, and both would move the window to the same place.
#pragma once

#include "metadata.p4"
#include "headers.p4"

const bit<32> POOL_CELLS = JOB_CELLS * MAX_POOLS;

#define READ(register, name) \
    ALU_2(register, name, \
        one = value.hi; \
        other = value.lo;)
#define WRITE(register, name, new_hi, new_lo) \
    ALU_0(register, name, \
        value.hi = new_hi; \
        value.lo = new_lo;)

// The window of features, and of `done`.
control TagWindow(in headers_t hdr, inout metadata_t meta) {
    REGISTER(POOL_CELLS, feature_tag)
    REGISTER(POOL_CELLS, barrier_tag)

    bit<32> hi;
    bit<32> lo;
    bit<32> next_hi;
    bit<32> next_lo;
    bit<32> start_lo;
    bit<32> hi_above;
    bit<32> lo_above;
    bit<2>  pool_above;

    READ(feature_tag, read_feature_tag)
    READ(barrier_tag, read_barrier_tag)
    WRITE(feature_tag, move_feature_tag, next_hi, next_lo)
    WRITE(barrier_tag, move_barrier_tag, next_hi, start_lo)

    apply {
        pool_above = hdr.switchgnn.pool |-| meta.last_pool;
        if (meta.loop.step == step_t.MOVE) {
            next_hi = meta.loop.tag_hi;
            if (hdr.switchgnn.echo == 1 || hdr.switchgnn.count == 0) {
                next_hi = next_hi + 1;
            }
            next_lo = meta.loop.destination;
            start_lo = next_lo;
            if (hdr.switchgnn.echo == 1) {
                // Of block 0 of that round.
                start_lo = next_lo & 0x60;
            }
            RUN_0(move_feature_tag, meta.own.pool)
            RUN_0(move_barrier_tag, meta.own.pool)
        } else if (meta.loop.step == step_t.FIRST) {
            if (hdr.barrier.isValid()) {
                RUN_2(read_barrier_tag, meta.own.pool, hi, lo)
            } else {
                RUN_2(read_feature_tag, meta.own.pool, hi, lo)
            }
            hi_above = meta.loop.tag_hi |-| hi;
            lo_above = meta.loop.tag_lo |-| lo;
            meta.window = hi;
            hi = hi ^ meta.loop.tag_hi;
            lo = lo ^ meta.loop.tag_lo;
            if (hi[31:24] == 0) {
                meta.window_known = 1;
                if (hi_above != 0) {
                    meta.beyond_window = 1;
                } else if (hi != 0) {
                    meta.passed = 1;
                } else if (lo_above != 0) {
                    meta.beyond_window = 1;
                } else if (lo != 0) {
                    meta.passed = 1;
                }
            } else if (meta.any_tag == 0) {
                meta.beyond_window = 1;
            }
            if (pool_above != 0) {
                meta.beyond_window = 1;
                meta.wrong_pool = 1;
            }
            if (!hdr.barrier.isValid() && hdr.switchgnn.kind != kind_t.NOTICE
                    && meta.beyond_window == 1) {
                meta.outcome = WRONG_TAG;
            }
        }
    }
}

// Which process of a worker speaks; see ../barrier.p4.
control Incarnation(in headers_t hdr, inout metadata_t meta) {
    REGISTER(MAX_WORKERS, incarnation)  // session ++ round, number

    bit<32> known;
    bit<32> number;
    bit<32> until;
    bit<32> above;

    READ(incarnation, read)
    ALU_0(incarnation, write,
        if (value.hi < until) {
            value.hi = until;
            value.lo = hdr.switchgnn.dst_id;
        })

    apply {
        until = meta.loop.tag_hi + (31w0 ++ hdr.switchgnn.echo);
        if (meta.loop.step == step_t.COLLECT) {
            RUN_0(write, meta.own.worker)
        } else {
            RUN_2(read, meta.own.worker, known, number)
            above = meta.loop.tag_hi |-| known;
            known = known ^ meta.loop.tag_hi;
            if (known[31:24] == 0) {
                if (number != hdr.switchgnn.dst_id) {
                    if (hdr.switchgnn.block_id != 0 || above == 0) {
                        meta.outcome = WRONG_INCARNATION;
                    }
                }
            }
        }
    }
}

// The largest magnitude of the newest round, and its worker; see ../barrier.p4.
control RoundStart(in headers_t hdr, inout metadata_t meta, in bit<1> closed) {
    REGISTER(JOB_CELLS, largest)   // session ++ round, magnitude
    REGISTER(JOB_CELLS, reporter)  // -, worker

    bit<32> worker;
    bit<32> above;
    bit<32> learned;

    ALU_3(largest, learn,
        one = 0;
        if (value.hi < meta.loop.tag_hi
                || (value.hi == meta.loop.tag_hi && value.lo < hdr.barrier.magnitude)) {
            one = 1;
            value.hi = meta.loop.tag_hi;
            value.lo = hdr.barrier.magnitude;
        }
        other = value.hi;
        third = value.lo;)
    ALU_3(largest, learn_round,
        one = 0;
        if (value.hi < meta.loop.tag_hi) {
            one = 1;
            value.hi = meta.loop.tag_hi;
            value.lo = hdr.barrier.magnitude;
        }
        other = value.hi;
        third = value.lo;)
    READ(largest, read_largest)
    ALU_0(reporter, write_reporter,
        value.lo = worker;)
    ALU(reporter, read_reporter,
        one = value.lo;)

    apply {
        worker = 16w0 ++ meta.worker;
        above = hdr.barrier.magnitude |-| meta.magnitude_limit;
        learned = 0;
        if (meta.loop.step != step_t.FIRST || meta.outcome != PENDING || above != 0) {
            RUN_2(read_largest, meta.own.cell, meta.newest_round, meta.largest)
        } else if (closed == 1) {
            RUN_3(learn_round, meta.own.cell, learned, meta.newest_round, meta.largest)
        } else {
            RUN_3(learn, meta.own.cell, learned, meta.newest_round, meta.largest)
        }
        if (learned == 1) {
            RUN_0(write_reporter, meta.own.cell)
            meta.reporter = worker;
        } else {
            RUN(read_reporter, meta.own.cell, meta.reporter)
        }
        if (meta.loop.step == step_t.FIRST && meta.outcome == PENDING) {
            if (above != 0) {
                meta.outcome = WRONG_MAGNITUDE;
            } else if (closed == 1 && hdr.switchgnn.block_id != 0) {
                if (meta.newest_round == meta.loop.tag_hi) {
                    if (meta.largest != hdr.barrier.magnitude) {
                        meta.outcome = WRONG_MAGNITUDE;
                    }
                }
            }
        }
    }
}

// The workers that are done with a tag, and the latest heartbeats of all: 64 in each register.
#define HALF(name, hi_bits, lo_bits) \
    REGISTER(POOL_CELLS, collected##name) \
    ALU_2(collected##name, add_to##name, \
        one = value.hi; \
        other = value.lo; \
        value.hi = value.hi | hdr.sets.own[hi_bits]; \
        value.lo = value.lo | hdr.sets.own[lo_bits];) \
    ALU_0(collected##name, start##name, \
        value.hi = hdr.sets.own[hi_bits]; \
        value.lo = hdr.sets.own[lo_bits];) \
    REGISTER(JOB_CELLS, heartbeats##name) \
    ALU_2(heartbeats##name, raise##name, \
        value.hi = value.hi | hdr.sets.own[hi_bits]; \
        value.lo = value.lo | hdr.sets.own[lo_bits]; \
        one = value.hi; \
        other = value.lo;) \
    ALU_2(heartbeats##name, lower##name, \
        value.hi = value.hi & ~hdr.sets.own[hi_bits]; \
        value.lo = value.lo & ~hdr.sets.own[lo_bits]; \
        one = value.hi; \
        other = value.lo;)

control Collected(inout headers_t hdr, inout metadata_t meta, in bit<32> same) {
    HALF(_upper, 127:96, 95:64)
    HALF(_lower, 63:32, 31:0)

    bit<1> beats;

    action beat() {
        beats = 1;
    }

    action still() {
        beats = 0;
    }

    table heartbeat {
        key = { hdr.sets.beats: exact; }
        actions = {
            beat;
            still;
        }
        const default_action = beat;
        const entries = { 0: still(); }
    }

    apply {
        if (meta.loop.step == step_t.COLLECT) {
            if (same == 1) {
                RUN_2(add_to_upper, meta.own.pool, hdr.sets.before[127:96], hdr.sets.before[95:64])
                RUN_2(add_to_lower, meta.own.pool, hdr.sets.before[63:32], hdr.sets.before[31:0])
            } else {
                RUN_0(start_upper, meta.own.pool)
                RUN_0(start_lower, meta.own.pool)
                hdr.sets.before = 0;
            }
            hdr.sets.after = hdr.sets.before | hdr.sets.own;
        }
        hdr.sets.beats = hdr.barrier.workers & hdr.sets.own;
        heartbeat.apply();
        if (beats == 1) {
            RUN_2(raise_upper, meta.own.cell, hdr.sets.beats[127:96], hdr.sets.beats[95:64])
            RUN_2(raise_lower, meta.own.cell, hdr.sets.beats[63:32], hdr.sets.beats[31:0])
        } else {
            RUN_2(lower_upper, meta.own.cell, hdr.sets.beats[127:96], hdr.sets.beats[95:64])
            RUN_2(lower_lower, meta.own.cell, hdr.sets.beats[63:32], hdr.sets.beats[31:0])
        }
    }
}

control Barrier(inout headers_t hdr,
                inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    Incarnation() incarnation;
    RoundStart()  round_start;
    Collected()   collected;

    REGISTER(POOL_CELLS, collected_tag)
    REGISTER(POOL_CELLS, following)     // what comes next, and who said so first
    REGISTER(JOB_CELLS, opened_round)   // -, session ++ round

    bit<32> hi;
    bit<32> lo;
    bit<32> hi_above;
    bit<32> lo_above;
    bit<32> newer;
    bit<32> same;
    bit<32> opened;
    bit<32> next;
    bit<32> following_next;
    bit<32> following_first;
    bit<32> first;
    bit<1>  closed;
    bit<1>  starts;
    count_t refusal;
    bit<32> culprit;

    READ(collected_tag, read_collected)
    ALU_2(collected_tag, claim,
        one = 0;
        other = 0;
        if (SAME(value, meta)) {
            other = 1;
        }
        if (NEWER(value, meta)) {
            one = 1;
            value.hi = meta.loop.tag_hi;
            value.lo = meta.loop.tag_lo;
        })
    READ(following, read_following)
    ALU_0(following, write_following,
        value.hi = next;
        value.lo = first;)
    ALU(opened_round, read_opened,
        one = 0;
        if (value.lo >= meta.loop.tag_hi) {
            one = 1;
        })
    ALU_0(opened_round, open_round,
        if (value.lo < meta.loop.tag_hi) {
            value.lo = meta.loop.tag_hi;
        })

    // Whether a set has no worker.
    action complete() {
        meta.complete = 1;
    }

    table missing {
        key = { hdr.sets.members: exact; }
        actions = {
            complete;
            NoAction;
        }
        const default_action = NoAction;
        const entries = { 0: complete(); }
    }

    action repeat() {
        meta.outcome = DONE_REPEATED;
    }

    action collect() {
        meta.outcome = DONE_COLLECTED;
    }

    table added {
        key = { hdr.sets.before: exact; }
        actions = {
            repeat;
            collect;
        }
        const default_action = collect;
        const entries = { 0: repeat(); }
    }

    action go_around(step_t step) {
        meta.loop.step = step;
        standard_metadata.egress_spec = meta.lane;
    }

    action answer(leave_t leave) {
        meta.loop.leave = leave;
        meta.loop.hop = meta.session;
        meta.loop.destination = meta.reporter;
        hdr.barrier.magnitude = meta.largest;
        hdr.barrier.plan = meta.plan;
        hdr.barrier.round = meta.newest_round & 0xffffff;
        hdr.barrier.workers = hdr.sets.after;
        standard_metadata.egress_spec = meta.loop.port;
    }

    action advance() {
        answer(leave_t.ADVANCE);
        hdr.barrier.workers = hdr.sets.members;
    }

    action wait() {
        answer(leave_t.WAITING);
        hdr.waiting.setValid();
        hdr.waiting.heartbeats = hdr.sets.beats;
        hdr.ipv4.total_len = WAITING_LENGTH;
    }

    action refuse() {
        wait();
        hdr.barrier.workers = 0;
        hdr.waiting.heartbeats = 0;
        meta.loop.destination = culprit;
        meta.count = (bit<32>) refusal;
    }

    // The tag without session and round.
    action follow() {
        next[31:23] = hdr.switchgnn.feature_group[15:7];
    }

    action follow_block() {
        next[22:7] = hdr.switchgnn.count;
    }

    action follow_pool() {
        next[6:0] = hdr.switchgnn.feature_group[6:0];
    }

    apply {
        next = 0;
        if (meta.loop.step == step_t.FIRST) {
            follow();
            follow_block();
            follow_pool();
        } else {
            next = meta.loop.destination;
        }
        first = hdr.switchgnn.echo ++ 15w0 ++ meta.worker;
        refusal = REFUSAL_NONE;
        culprit = 0;
        closed = 0;
        starts = 0;
        same = 0;
        hi = 0;
        following_next = 0;
        following_first = 0;
        if (meta.loop.step == step_t.FIRST) {
            RUN_2(read_collected, meta.own.pool, hi, lo)
            RUN_2(read_following, meta.own.pool, following_next, following_first)
            RUN(read_opened, meta.own.cell, opened)
            hi_above = meta.loop.tag_hi |-| hi;
            lo_above = meta.loop.tag_lo |-| lo;
            if (hi == meta.loop.tag_hi && lo == meta.loop.tag_lo) {
                same = 1;
            }
            if (opened == 1) {
                closed = 1;
            }
            if (meta.window_known == 0) {
                // The tag of block 0 has only its pool.
                if (hi_above == 0 && (hi != meta.loop.tag_hi || lo[31:7] != 0)) {
                    closed = 1;
                }
                if (meta.loop.tag_lo[31:7] == 0 && meta.loop.tag_lo[4:0] == 0
                        && (same == 1 || hi[31:24] != meta.loop.tag_hi[31:24])) {
                    starts = 1;
                }
                if (hi_above == 0 && same == 0 && (hi != meta.loop.tag_hi || lo_above == 0)) {
                    meta.passed = 1;
                }
            }
            if (meta.own.job == 0) {
                meta.outcome = NO_JOB;
            } else if (!SPEAKS_FOR_ITSELF(hdr, meta)) {
                meta.outcome = WRONG_PORT;
            } else if (hdr.barrier.plan != meta.plan) {
                meta.outcome = WRONG_PLAN;
            } else if (OTHER_SESSION(hdr, meta)) {
                meta.outcome = WRONG_SESSION;
            } else if (hdr.switchgnn.round == 0 || meta.wrong_pool == 1
                       || (meta.beyond_window == 1 && starts == 0)) {
                meta.outcome = WRONG_TAG;
            }
        }
        if (meta.loop.step == step_t.COLLECT) {
            RUN_2(claim, meta.own.pool, newer, same)
            if (newer == 1) {
                RUN_0(write_following, meta.own.pool)
            }
        }
        if (meta.loop.step == step_t.MOVE) {
            RUN_0(open_round, meta.own.cell)
        }
        if (meta.outcome == PENDING && meta.loop.step != step_t.MOVE) {
            incarnation.apply(hdr, meta);
        }
        round_start.apply(hdr, meta, closed);
        if (meta.loop.step == step_t.FIRST && meta.outcome == PENDING && meta.passed == 0
                && same == 1
                && (following_next != next || following_first[31:31] != hdr.switchgnn.echo)) {
            meta.outcome = WRONG_NEXT;
        }
        if (meta.outcome == PENDING) {
            collected.apply(hdr, meta, same);
            if (meta.loop.step == step_t.COLLECT) {
                // Those that lack, and those that are new.
                hdr.sets.members = hdr.sets.members ^ hdr.sets.after;
                hdr.sets.before = hdr.sets.before ^ hdr.sets.after;
                missing.apply();
                added.apply();
            }
        }
        if (meta.outcome == WRONG_PORT) {
            // It speaks for another worker.
        } else if (meta.loop.step == step_t.MOVE) {
            answer(leave_t.ADVANCE);
            if (meta.loop.flags[1:1] == 0) {
                standard_metadata.mcast_grp = GROUP_OF(meta, WORKERS_GROUP);
            }
        } else if (meta.loop.step == step_t.COLLECT) {
            if (meta.complete == 1) {
                go_around(step_t.MOVE);
                if (meta.outcome == DONE_REPEATED) {
                    meta.loop.flags[1:1] = 1;
                }
            } else if (meta.outcome == DONE_REPEATED) {
                wait();
            }
        } else if (meta.outcome == PENDING) {
            if (meta.passed == 1) {
                meta.outcome = DONE_REPEATED;
                advance();
            } else {
                meta.loop.destination = next;
                go_around(step_t.COLLECT);
            }
        } else {
            if (meta.outcome == WRONG_MAGNITUDE) {
                refusal = REFUSAL_MAGNITUDE;
                culprit = 16w0 ++ meta.worker;
            } else if (meta.outcome == WRONG_NEXT) {
                refusal = REFUSAL_NEXT;
                culprit = 16w0 ++ following_first[15:0];
            } else {
                meta.largest = 0;
                meta.newest_round = 0;
                if (meta.outcome == WRONG_INCARNATION) {
                    refusal = REFUSAL_INCARNATION;
                } else if (meta.outcome == WRONG_TAG) {
                    refusal = REFUSAL_TAG;
                    culprit = NOBODY;
                    if (meta.window_known == 1) {
                        meta.newest_round = meta.window;
                    } else if (hi[31:24] == meta.loop.tag_hi[31:24]) {
                        meta.newest_round = hi;
                        culprit = 16w0 ++ following_first[15:0];
                    }
                }
            }
            refuse();
        }
    }
}
