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
    WRITE(barrier_tag, move, hdr.work.move_hi, hdr.work.start)

    action differ() { hdr.work.window = hdr.work.window ^ meta.loop.tag_hi; }
    action mask() { hdr.work.window_session = hdr.work.window & SESSION_BITS; }

    apply {
        if (meta.loop.step == step_t.CLOSE) {
            RUN_0(move, meta.loop.pool)
        } else if (meta.loop.step == step_t.FIRST) {
            RUN_4(compare, meta.loop.pool, hdr.work.window_newer, hdr.work.window_same,
                  hdr.work.window, hdr.work.unused)
            differ();
            mask();
            if (hdr.work.window_session == 0) {
                meta.window_known = 1;
                if (hdr.work.window_newer == 1) {
                    meta.beyond_window = 1;
                } else if (hdr.work.window_same == 0) {
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
        if (value.hi < hdr.work.says_hi) {
            value.hi = hdr.work.says_hi;
            value.lo = hdr.switchgnn.dst_id;
        })

    action differ() { hdr.work.known = hdr.work.known ^ meta.loop.tag_hi; }
    action mask() { hdr.work.known = hdr.work.known & SESSION_BITS; }

    apply {
        if (meta.loop.step == step_t.COLLECT) {
            RUN_0(write, meta.loop.worker)
        } else {
            RUN_3(read, meta.loop.worker, hdr.work.later, hdr.work.known, hdr.work.number)
            differ();
            mask();
            if (hdr.work.known == 0) {
                if (hdr.work.number != hdr.switchgnn.dst_id) {
                    if (hdr.switchgnn.block_id != 0 || hdr.work.later == 0) {
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
        value.lo = hdr.work.worker;)
    ALU(reporter, read_reporter,
        one = value.lo;)

    apply {
        learns = 0;
        if (meta.loop.step == step_t.FIRST && meta.outcome == PENDING) {
            if (hdr.work.above == 0) {
                learns = 1;
            }
        }
        hdr.work.learned = 0;
        if (learns == 0) {
            RUN_2(read_largest, meta.loop.cell, hdr.work.newest_round, hdr.work.largest)
        } else if (closed == 1) {
            RUN_3(learn_round, meta.loop.cell, hdr.work.learned, hdr.work.newest_round, hdr.work.largest)
        } else {
            RUN_3(learn, meta.loop.cell, hdr.work.learned, hdr.work.newest_round, hdr.work.largest)
        }
        if (hdr.work.learned == 1) {
            RUN_0(write_reporter, meta.loop.cell)
            hdr.work.reporter = hdr.work.worker;
        } else {
            RUN(read_reporter, meta.loop.cell, hdr.work.reporter)
        }
        if (meta.loop.step == step_t.FIRST && meta.outcome == PENDING) {
            if (hdr.work.above != 0) {
                meta.outcome = WRONG_MAGNITUDE;
            } else if (closed == 1 && hdr.switchgnn.block_id != 0) {
                if (hdr.work.newest_round == meta.loop.tag_hi) {
                    if (hdr.work.largest != hdr.barrier.magnitude) {
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
        value.hi = value.hi | hdr.work.worker_bit[hi_bits]; \
        value.lo = value.lo | hdr.work.worker_bit[lo_bits];) \
    ALU_0(collected##name, start##name, \
        value.hi = hdr.work.worker_bit[hi_bits]; \
        value.lo = hdr.work.worker_bit[lo_bits];) \
    REGISTER(JOB_CELLS, heartbeats##name) \
    ALU_2(heartbeats##name, raise##name, \
        value.hi = value.hi | hdr.work.worker_bit[hi_bits]; \
        value.lo = value.lo | hdr.work.worker_bit[lo_bits]; \
        one = value.hi; \
        other = value.lo;) \
    ALU_2(heartbeats##name, lower##name, \
        value.hi = value.hi & ~hdr.work.worker_bit[hi_bits]; \
        value.lo = value.lo & ~hdr.work.worker_bit[lo_bits]; \
        one = value.hi; \
        other = value.lo;)

control Collected(inout headers_t hdr, inout metadata_t meta, in flag_t same) {
    HALF(_upper, 127:96, 95:64)
    HALF(_lower, 63:32, 31:0)

    bit<1> beats;

    action beat() { beats = 1; }
    action still() { beats = 0; }

    table heartbeat {
        key = { hdr.work.beats: exact; }
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
                RUN_2(add_to_upper, meta.loop.pool, hdr.work.before[127:96], hdr.work.before[95:64])
                RUN_2(add_to_lower, meta.loop.pool, hdr.work.before[63:32], hdr.work.before[31:0])
            } else {
                RUN_0(start_upper, meta.loop.pool)
                RUN_0(start_lower, meta.loop.pool)
                hdr.work.before = 0;
            }
            hdr.work.after = hdr.work.before | hdr.work.worker_bit;
        }
        hdr.work.beats = hdr.barrier.workers & hdr.work.worker_bit;
        heartbeat.apply();
        if (beats == 1) {
            RUN_2(raise_upper, meta.loop.cell, hdr.work.beats[127:96], hdr.work.beats[95:64])
            RUN_2(raise_lower, meta.loop.cell, hdr.work.beats[63:32], hdr.work.beats[31:0])
        } else {
            RUN_2(lower_upper, meta.loop.cell, hdr.work.beats[127:96], hdr.work.beats[95:64])
            RUN_2(lower_lower, meta.loop.cell, hdr.work.beats[63:32], hdr.work.beats[31:0])
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
    bit<1>  refused;
    count_t refusal;

    COMPARE(collected_tag, compare)
    CLAIM(collected_tag, claim)
    READ(following, read_following)
    ALU_0(following, write_following,
        value.hi = hdr.work.next;
        value.lo = hdr.work.first;)
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
        key = { hdr.work.lacks: exact; }
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
        key = { hdr.work.before: exact; }
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
        meta.loop.tag_hi = hdr.work.move_hi;
        meta.loop.tag_lo = hdr.work.next;
        standard_metadata.egress_spec = meta.loop.lane;
    }

    action differ() {
        hdr.work.tag_hi = hdr.work.tag_hi ^ meta.loop.tag_hi;
        hdr.work.early_features = hdr.work.following_first ^ hdr.work.first;
        hdr.work.tag_lo = hdr.work.tag_lo & ~POOL_MASK;
    }

    action mask() {
        hdr.work.other_session = hdr.work.tag_hi & SESSION_BITS;
        hdr.work.early_features = hdr.work.early_features & EARLY_FEATURES;
    }

    action tell_window() { hdr.work.newest_round = hdr.work.window ^ meta.loop.tag_hi; }
    action tell_collected() { hdr.work.newest_round = hdr.work.tag_hi ^ meta.loop.tag_hi; }

    action answer(leave_t leave) {
        meta.loop.leave = leave;
        standard_metadata.egress_spec = meta.loop.port;
    }

    action tell_worker() { meta.loop.destination = hdr.work.reporter; }

    action tell_culprit() {
        meta.loop.destination = hdr.work.culprit;
        meta.count = refusal;
    }

    action tell_magnitude() { hdr.barrier.magnitude = hdr.work.largest; }
    action tell_workers() { hdr.barrier.workers = hdr.work.after; }
    action tell_all() { hdr.barrier.workers = hdr.work.members; }
    action tell_nobody() { hdr.barrier.workers = 0; }

    action tell_heartbeats() {
        hdr.waiting.setValid();
        hdr.waiting.heartbeats = hdr.work.beats;
        hdr.ipv4.total_len = WAITING_LENGTH;
    }

    action tell_none() {
        hdr.waiting.setValid();
        hdr.waiting.heartbeats = 0;
        hdr.ipv4.total_len = WAITING_LENGTH;
    }

    JOIN_2(32, join_newest_round, hdr.barrier.round, 8w0, hdr.work.newest_round[23:0])

    apply {
        come_around();
        if (meta.loop.step == step_t.FIRST || meta.loop.step == step_t.COLLECT) {
            meta.decides = 1;
        }
        window.apply(hdr, meta);
        refusal = REFUSAL_NONE;
        hdr.work.culprit = 0;
        closed = 0;
        starts = 0;
        same = 0;
        hdr.work.other_session = 0;
        hdr.work.tag_hi = 0;
        hdr.work.following_next = 0;
        hdr.work.following_first = 0;
        if (meta.loop.step == step_t.FIRST) {
            RUN_4(compare, meta.loop.pool, hdr.work.newer, hdr.work.same, hdr.work.tag_hi,
                  hdr.work.tag_lo)
            RUN_2(read_following, meta.loop.pool, hdr.work.following_next,
                  hdr.work.following_first)
            RUN(read_opened, meta.loop.cell, opened)
            differ();
            mask();
            if (hdr.work.same == 1) {
                same = 1;
            }
            if (opened == 1) {
                closed = 1;
            }
            if (meta.window_known == 0) {
                if (hdr.work.newer == 0 && same == 0) {
                    meta.passed = 1;
                }
                if (hdr.work.tag_hi == 0) {
                    if (hdr.work.tag_lo != 0) {
                        closed = 1;
                    }
                } else if (hdr.work.newer == 0) {
                    closed = 1;
                }
                if (hdr.work.block == 0) {
                    if (same == 1 || hdr.work.other_session != 0) {
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
                if (hdr.work.following_next != hdr.work.next) {
                    meta.outcome = WRONG_NEXT;
                } else if (hdr.work.early_features != 0) {
                    meta.outcome = WRONG_NEXT;
                }
            }
        }
        if (meta.outcome == PENDING) {
            collected.apply(hdr, meta, same);
            if (meta.loop.step == step_t.COLLECT) {
                // Those that lack, and those that are new.
                hdr.work.lacks = hdr.work.after ^ hdr.work.members;
                hdr.work.before = hdr.work.before ^ hdr.work.after;
                missing.apply();
                added.apply();
            }
        }
        refused = 0;
        if (meta.outcome == WRONG_PORT) {
            // It speaks for another worker.
        } else if (meta.loop.step == step_t.CLOSE) {
            answer(leave_t.ADVANCE);
            tell_workers();
            if (meta.loop.flags == 0) {
                standard_metadata.mcast_grp = meta.loop.group;
            }
        } else if (meta.loop.step == step_t.COLLECT) {
            if (meta.complete == 1) {
                move();
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
            refused = 1;
            answer(leave_t.WAITING);
            tell_nobody();
            tell_none();
            if (meta.outcome == WRONG_MAGNITUDE) {
                refusal = REFUSAL_MAGNITUDE;
                hdr.work.culprit = hdr.work.worker;
            } else if (meta.outcome == WRONG_NEXT) {
                refusal = REFUSAL_NEXT;
                hdr.work.culprit = hdr.work.following_first;
            } else {
                hdr.work.largest = 0;
                hdr.work.newest_round = 0;
                if (meta.outcome == WRONG_INCARNATION) {
                    refusal = REFUSAL_INCARNATION;
                } else if (meta.outcome == WRONG_TAG) {
                    refusal = REFUSAL_TAG;
                    hdr.work.culprit = NOBODY;
                    if (meta.window_known == 1) {
                        tell_window();
                    } else if (hdr.work.other_session == 0) {
                        tell_collected();
                        hdr.work.culprit = hdr.work.following_first;
                    }
                }
            }
            if (hdr.work.culprit != NOBODY) {
                hdr.work.culprit = hdr.work.culprit & 0xffff;
            }
        }
        if (meta.loop.leave != leave_t.AS_IT_IS) {
            if (refused == 1) {
                tell_culprit();
            } else {
                tell_worker();
            }
            tell_magnitude();
            join_newest_round();
            hdr.work.setInvalid();
        }
        meta.loop.count = meta.count;
    }
}
