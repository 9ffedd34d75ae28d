// The block barrier, and the window of tags that may pass; as ../barrier.p4, for one switch. A `done`
// takes up to three passes: FIRST only reads what it is compared with, COLLECT adds its worker, and
// MOVE, for the last one, moves the window. Passes of two `done` of a tag may alternate: sets and
// magnitudes only grow, and both would move the window to the same place.
#pragma once

#include "metadata.p4"
#include "headers.p4"
#include "done.p4"

const bit<32> POOL_CELLS = JOB_CELLS * MAX_POOLS;

#define READ(register, name) \
    ALU_2(register, name, \
        one = value.hi; \
        other = value.lo;)
// Whether the packet's tag is newer, or the same, and the tag of the cell.
#define COMPARE(register, name) \
    FLAGS_AND_WORDS(register, name, \
        newer_ = 0; \
        same_ = 0; \
        if (SAME(value, meta)) { \
            same_ = 1; \
        } \
        if (NEWER(value, meta)) { \
            newer_ = 1; \
        } \
        word = value.hi; \
        other = value.lo;)
#define WRITE(register, name, new_hi, new_lo) \
    ALU_0(register, name, \
        value.hi = new_hi; \
        value.lo = new_lo;)

// The window of features.
control TagWindow(in headers_t hdr, inout metadata_t meta) {
    REGISTER(POOL_CELLS, feature_tag)

    bit<32> newer;
    bit<32> round;

    FLAG_AND_WORD(feature_tag, compare,
        flag = 0;
        if (NEWER(value, meta)) {
            flag = 1;
        }
        word = value.hi;)
    WRITE(feature_tag, move, meta.loop.tag_hi, meta.loop.tag_lo)

    action differ() { round = round ^ meta.loop.tag_hi; }
    action mask() { round = round & SESSION_BITS; }

    apply {
        if (meta.loop.step == step_t.MOVE) {
            RUN_0(move, meta.loop.pool)
        } else if (meta.loop.step == step_t.FIRST) {
            RUN_2(compare, meta.loop.pool, newer, round)
            differ();
            mask();
            if (hdr.switchgnn.kind != kind_t.NOTICE) {
                if (round == 0) {
                    if (newer == 1) {
                        meta.outcome = WRONG_TAG;
                    }
                } else if (meta.loop.any_tag == 0) {
                    meta.outcome = WRONG_TAG;
                }
            }
        }
    }
}

// The window of `done`.
control BarrierWindow(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(POOL_CELLS, barrier_tag)

    COMPARE(barrier_tag, compare)
    WRITE(barrier_tag, move, hdr.done.move_hi, hdr.done.start)

    action differ() { meta.work.window = meta.work.window ^ meta.loop.tag_hi; }
    action mask() { meta.work.window_session = meta.work.window & SESSION_BITS; }

    apply {
        if (meta.loop.step == step_t.CLOSE) {
            RUN_0(move, meta.loop.pool)
        } else if (meta.loop.step == step_t.FIRST) {
            RUN_4(compare, meta.loop.pool, meta.work.window_newer, meta.work.window_same,
                  meta.work.window, meta.work.unused)
            differ();
            mask();
            if (meta.work.window_session == 0) {
                meta.window_known = 1;
                if (meta.work.window_newer == 1) {
                    meta.beyond_window = 1;
                } else if (meta.work.window_same == 0) {
                    meta.passed = 1;
                }
            } else if (meta.loop.any_tag == 0) {
                meta.beyond_window = 1;
            }
        }
    }
}

// Which process of a worker speaks; see ../barrier.p4.
control Incarnation(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(MAX_WORKERS, incarnation)  // session ++ round, number

    FLAG_AND_WORDS(incarnation, read,
        flag = 0;
        if (value.hi < meta.loop.tag_hi) {
            flag = 1;
        }
        word = value.hi;
        other = value.lo;)
    // Its last `done` of a round announces the next one.
    ALU_0(incarnation, write,
        if (value.hi < hdr.done.says_hi) {
            value.hi = hdr.done.says_hi;
            value.lo = hdr.switchgnn.dst_id;
        })

    action differ() { meta.work.known = meta.work.known ^ meta.loop.tag_hi; }
    action mask() { meta.work.known = meta.work.known & SESSION_BITS; }

    apply {
        if (meta.loop.step == step_t.COLLECT) {
            RUN_0(write, meta.loop.worker)
        } else {
            RUN_3(read, meta.loop.worker, meta.work.later, meta.work.known, meta.work.number)
            differ();
            mask();
            if (meta.work.known == 0) {
                if (meta.work.number != hdr.switchgnn.dst_id) {
                    if (hdr.switchgnn.block_id != 0 || meta.work.later == 0) {
                        meta.outcome = WRONG_INCARNATION;
                    }
                }
            }
        }
    }
}

// The largest magnitude of the newest round, and its worker; see ../barrier.p4.
control RoundStart(inout headers_t hdr, inout metadata_t meta, in bit<1> closed) {
    REGISTER(JOB_CELLS, largest)   // session ++ round, magnitude
    REGISTER(JOB_CELLS, reporter)  // -, worker


    bit<1> learns;

    FLAG_AND_WORDS(largest, learn,
        flag = 0;
        if (value.hi < meta.loop.tag_hi
                || (value.hi == meta.loop.tag_hi && value.lo < hdr.barrier.magnitude)) {
            flag = 1;
            value.hi = meta.loop.tag_hi;
            value.lo = hdr.barrier.magnitude;
        }
        word = value.hi;
        other = value.lo;)
    FLAG_AND_WORDS(largest, learn_round,
        flag = 0;
        if (value.hi < meta.loop.tag_hi) {
            flag = 1;
            value.hi = meta.loop.tag_hi;
            value.lo = hdr.barrier.magnitude;
        }
        word = value.hi;
        other = value.lo;)
    READ(largest, read_largest)
    ALU_0(reporter, write_reporter,
        value.lo = hdr.done.first;)
    ALU(reporter, read_reporter,
        one = value.lo;)

    apply {
        learns = 0;
        if (meta.loop.step == step_t.FIRST && meta.outcome == PENDING) {
            if (hdr.done.above == 0) {
                learns = 1;
            }
        }
        meta.work.learned = 0;
        if (learns == 0) {
            RUN_2(read_largest, meta.loop.cell, meta.work.newest_round, meta.work.largest)
        } else if (closed == 1) {
            RUN_3(learn_round, meta.loop.cell, meta.work.learned, meta.work.newest_round, meta.work.largest)
        } else {
            RUN_3(learn, meta.loop.cell, meta.work.learned, meta.work.newest_round, meta.work.largest)
        }
        if (meta.work.learned == 1) {
            RUN_0(write_reporter, meta.loop.cell)
            meta.work.reporter = hdr.done.first;
        } else {
            RUN(read_reporter, meta.loop.cell, meta.work.reporter)
        }
        if (meta.loop.step == step_t.FIRST && meta.outcome == PENDING) {
            if (hdr.done.above != 0) {
                meta.outcome = WRONG_MAGNITUDE;
            } else if (closed == 1 && hdr.switchgnn.block_id != 0) {
                if (meta.work.newest_round == meta.loop.tag_hi) {
                    if (meta.work.largest != hdr.barrier.magnitude) {
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
        value.hi = value.hi | hdr.done.worker_bit[hi_bits]; \
        value.lo = value.lo | hdr.done.worker_bit[lo_bits];) \
    ALU_0(collected##name, start##name, \
        value.hi = hdr.done.worker_bit[hi_bits]; \
        value.lo = hdr.done.worker_bit[lo_bits];) \
    REGISTER(JOB_CELLS, heartbeats##name) \
    ALU_2(heartbeats##name, raise##name, \
        value.hi = value.hi | hdr.done.worker_bit[hi_bits]; \
        value.lo = value.lo | hdr.done.worker_bit[lo_bits]; \
        one = value.hi; \
        other = value.lo;) \
    ALU_2(heartbeats##name, lower##name, \
        value.hi = value.hi & ~hdr.done.worker_bit[hi_bits]; \
        value.lo = value.lo & ~hdr.done.worker_bit[lo_bits]; \
        one = value.hi; \
        other = value.lo;)

control Collected(inout headers_t hdr, inout metadata_t meta, in flag_t same) {
    HALF(_upper, 127:96, 95:64)
    HALF(_lower, 63:32, 31:0)

    bit<1> beats;

    action beat() { beats = 1; }
    action still() { beats = 0; }

    table heartbeat {
        key = { meta.work.beats: exact; }
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
                RUN_2(add_to_upper, meta.loop.pool, meta.work.before[127:96], meta.work.before[95:64])
                RUN_2(add_to_lower, meta.loop.pool, meta.work.before[63:32], meta.work.before[31:0])
            } else {
                RUN_0(start_upper, meta.loop.pool)
                RUN_0(start_lower, meta.loop.pool)
                meta.work.before = 0;
            }
            meta.work.after = meta.work.before | hdr.done.worker_bit;
        }
        meta.work.beats = hdr.barrier.workers & hdr.done.worker_bit;
        heartbeat.apply();
        if (beats == 1) {
            RUN_2(raise_upper, meta.loop.cell, meta.work.beats[127:96], meta.work.beats[95:64])
            RUN_2(raise_lower, meta.loop.cell, meta.work.beats[63:32], meta.work.beats[31:0])
        } else {
            RUN_2(lower_upper, meta.loop.cell, meta.work.beats[127:96], meta.work.beats[95:64])
            RUN_2(lower_lower, meta.loop.cell, meta.work.beats[63:32], meta.work.beats[31:0])
        }
    }
}

control Barrier(inout headers_t hdr,
                inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    BarrierWindow() window;
    Incarnation() incarnation;
    RoundStart()  round_start;
    Collected()   collected;

    REGISTER(POOL_CELLS, collected_tag)
    REGISTER(POOL_CELLS, following)     // what comes next, and who said so first
    REGISTER(JOB_CELLS, opened_round)   // -, session ++ round

    flag_t  newer;
    flag_t  same;
    flag_t  opened;
    bit<1>  closed;
    bit<1>  starts;
    count_t refusal;

    COMPARE(collected_tag, compare)
    CLAIM(collected_tag, claim)
    READ(following, read_following)
    ALU_0(following, write_following,
        value.hi = hdr.done.next;
        value.lo = hdr.done.first;)
    FLAG(opened_round, read_opened,
        flag = 0;
        if (value.lo >= meta.loop.tag_hi) {
            flag = 1;
        })
    ALU_0(opened_round, open_round,
        if (value.lo < hdr.switchgnn.turn) {
            value.lo = hdr.switchgnn.turn;
        })

    // Whether a set has no worker.
    action complete() { meta.complete = 1; }

    table missing {
        key = { meta.work.lacks: exact; }
        actions = {
            complete;
            NoAction;
        }
        const default_action = NoAction;
        const entries = { 0: complete(); }
    }

    action repeat() { meta.outcome = DONE_REPEATED; }
    action collect() { meta.outcome = DONE_COLLECTED; }

    table added {
        key = { meta.work.before: exact; }
        actions = {
            repeat;
            collect;
        }
        const default_action = collect;
        const entries = { 0: repeat(); }
    }

    action come_around() {
        DROP(standard_metadata)
        meta.outcome = PENDING;
    }

    action go_around() {
        meta.loop.step = step_t.COLLECT;
        standard_metadata.egress_spec = meta.loop.to;
    }

    // To the window of features, with what comes next.
    action move() {
        meta.loop.step = step_t.MOVE;
        meta.loop.tag_hi = hdr.done.move_hi;
        meta.loop.tag_lo = hdr.done.next;
        standard_metadata.egress_spec = meta.loop.lane;
    }

    action differ() {
        meta.work.tag_hi = meta.work.tag_hi ^ meta.loop.tag_hi;
        meta.work.early_features = meta.work.following_first ^ hdr.done.first;
        meta.work.tag_lo = meta.work.tag_lo & ~POOL_MASK;
    }

    action mask() {
        meta.work.other_session = meta.work.tag_hi & SESSION_BITS;
        meta.work.early_features = meta.work.early_features & EARLY_FEATURES;
    }

    action tell_window() { meta.work.newest_round = meta.work.window ^ meta.loop.tag_hi; }
    action tell_collected() { meta.work.newest_round = meta.work.tag_hi ^ meta.loop.tag_hi; }

    action answer(leave_t leave) {
        meta.loop.leave = leave;
        standard_metadata.egress_spec = meta.loop.port;
    }

    action tell_magnitude() { hdr.barrier.magnitude = meta.work.largest; }
    action tell_workers() { hdr.barrier.workers = meta.work.after; }
    action tell_all() { hdr.barrier.workers = hdr.done.members; }
    action tell_nobody() { hdr.barrier.workers = 0; }

    action tell_heartbeats() {
        hdr.waiting.setValid();
        hdr.waiting.heartbeats = meta.work.beats;
        hdr.ipv4.total_len = WAITING_LENGTH;
    }

    action tell_none() {
        hdr.waiting.setValid();
        hdr.waiting.heartbeats = 0;
        hdr.ipv4.total_len = WAITING_LENGTH;
    }

    JOIN_2(32, join_newest_round, hdr.barrier.round, 8w0, meta.work.newest_round[23:0])

    apply {
        come_around();
        if (meta.loop.step == step_t.FIRST || meta.loop.step == step_t.COLLECT) {
            meta.decides = 1;
        }
        window.apply(hdr, meta);
        refusal = REFUSAL_NONE;
        closed = 0;
        starts = 0;
        same = 0;
        meta.work.other_session = 0;
        meta.work.tag_hi = 0;
        meta.work.following_next = 0;
        meta.work.following_first = 0;
        if (meta.loop.step == step_t.FIRST) {
            RUN_4(compare, meta.loop.pool, meta.work.newer, meta.work.same, meta.work.tag_hi,
                  meta.work.tag_lo)
            RUN_2(read_following, meta.loop.pool, meta.work.following_next,
                  meta.work.following_first)
            RUN(read_opened, meta.loop.cell, opened)
            differ();
            mask();
            if (meta.work.same == 1) {
                same = 1;
            }
            if (opened == 1) {
                closed = 1;
            }
            if (meta.window_known == 0) {
                if (meta.work.newer == 0 && same == 0) {
                    meta.passed = 1;
                }
                if (meta.work.tag_hi == 0) {
                    if (meta.work.tag_lo != 0) {
                        closed = 1;
                    }
                } else if (meta.work.newer == 0) {
                    closed = 1;
                }
                if (hdr.done.block == 0) {
                    if (same == 1 || meta.work.other_session != 0) {
                        starts = 1;
                    }
                }
            }
            meta.outcome = meta.loop.verdict;
            if (meta.outcome == PENDING && meta.beyond_window == 1 && starts == 0) {
                meta.outcome = WRONG_TAG;
            }
        }
        if (meta.loop.step == step_t.COLLECT) {
            RUN_2(claim, meta.loop.pool, newer, same)
            if (newer == 1) {
                RUN_0(write_following, meta.loop.pool)
            }
        }
        if (meta.loop.step == step_t.CLOSE) {
            RUN_0(open_round, meta.loop.cell)
        }
        if (meta.outcome == PENDING && meta.loop.step != step_t.CLOSE) {
            incarnation.apply(hdr, meta);
        }
        round_start.apply(hdr, meta, closed);
        if (meta.loop.step == step_t.FIRST && meta.outcome == PENDING && meta.passed == 0) {
            if (same == 1) {
                if (meta.work.following_next != hdr.done.next) {
                    meta.outcome = WRONG_NEXT;
                } else if (meta.work.early_features != 0) {
                    meta.outcome = WRONG_NEXT;
                }
            }
        }
        if (meta.outcome == PENDING && meta.loop.step != step_t.CLOSE) {
            collected.apply(hdr, meta, same);
            if (meta.loop.step == step_t.COLLECT) {
                // Those that lack, and those that are new.
                meta.work.lacks = meta.work.after ^ hdr.done.members;
                meta.work.before = meta.work.before ^ meta.work.after;
                missing.apply();
                added.apply();
            }
        }
        meta.work.culprit = meta.work.reporter;
        if (meta.loop.step == step_t.CLOSE) {
            answer(leave_t.ADVANCE);
            if (meta.loop.flags == 0) {
                standard_metadata.mcast_grp = meta.loop.group;
            }
        } else if (meta.loop.step == step_t.COLLECT) {
            if (meta.complete == 1) {
                move();
                tell_workers();
                if (meta.outcome == DONE_REPEATED) {
                    meta.loop.flags = DONE_AGAIN;
                }
            } else if (meta.outcome == DONE_REPEATED) {
                answer(leave_t.WAITING);
                tell_workers();
                tell_heartbeats();
            }
        } else if (meta.outcome == PENDING) {
            if (meta.passed == 1) {
                meta.outcome = DONE_REPEATED;
                answer(leave_t.ADVANCE);
                tell_all();
            } else {
                go_around();
            }
        } else {
            answer(leave_t.WAITING);
            meta.work.culprit = 0;
            tell_nobody();
            tell_none();
            if (meta.outcome == WRONG_MAGNITUDE) {
                refusal = REFUSAL_MAGNITUDE;
                meta.work.culprit = hdr.done.first;
            } else if (meta.outcome == WRONG_NEXT) {
                refusal = REFUSAL_NEXT;
                meta.work.culprit = meta.work.following_first;
            } else {
                meta.work.largest = 0;
                meta.work.newest_round = 0;
                if (meta.outcome == WRONG_INCARNATION) {
                    refusal = REFUSAL_INCARNATION;
                } else if (meta.outcome == WRONG_TAG) {
                    refusal = REFUSAL_TAG;
                    meta.work.culprit = NOBODY;
                    if (meta.window_known == 1) {
                        tell_window();
                    } else if (meta.work.other_session == 0) {
                        tell_collected();
                        meta.work.culprit = meta.work.following_first;
                    }
                }
            }
        }
        if (meta.work.culprit != NOBODY) {
            meta.work.culprit = meta.work.culprit & 0xffff;
        }
        if (meta.loop.leave != leave_t.AS_IT_IS) {
            tell_magnitude();
            join_newest_round();
            hdr.done.setInvalid();
        }
        meta.loop.destination = meta.work.culprit;
        meta.loop.count = refusal;
    }
}
