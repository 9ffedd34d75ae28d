// The block barrier; as ../barrier.p4. A `done` takes up to four passes: FIRST only reads what it is
// compared with, COLLECT adds its worker, and for the last one MOVE and CLOSE move the windows; one of
// an earlier tag takes FIRST and LATE. ADVANCE from above takes COLLECT, MOVE and CLOSE. Passes of two
// `done` of a tag may alternate: sets and magnitudes only grow, and both would move the windows to the
// same place.
#pragma once

#include "done.p4"
#include "round.p4"
#include "sets.p4"

control Barrier(inout headers_t hdr,
                inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    RoundStart() round_start;

    REGISTER(POOL_CELLS, barrier_tag)   // the window of `done`
    REGISTER(POOL_CELLS, collected_tag)
    REGISTER(POOL_CELLS, following)     // what comes next, and who said so first
    REGISTER(JOB_CELLS, opened_round)   // -, session ++ round

    // Which process of a worker speaks: session ++ round, number
    REGISTER(MAX_WORKERS, incarnation)

    COMPARE(barrier_tag, compare_window)
    WRITE(barrier_tag, move_window)
    COMPARE(collected_tag, compare)
    MATCH(collected_tag, match)
    CLAIM(collected_tag, claim)
    ALU_3(incarnation, read_process,
        one = 0;
        if (value.hi < meta.loop.tag_hi) {
            one = 1;
        }
        two = value.hi;
        three = value.lo;)
    ALU_0(incarnation, write_process,
        if (value.hi < meta.loop.tag_hi) {
            value.hi = meta.loop.tag_hi;
            value.lo = hdr.switchgnn.dst_id;
        })
    // Its last `done` of a round announces the next one.
    ALU_0(incarnation, announce_process,
        if (value.hi <= meta.loop.tag_hi) {
            value.hi = meta.loop.tag_hi + 1;
            value.lo = hdr.switchgnn.dst_id;
        })

    READ(following, read_following)
    ALU_0(following, write_following,
        value.hi = hdr.done.next;
        value.lo = hdr.done.first;)
    FLAG(opened_round, read_opened,
        one = 0;
        if (value.lo >= hdr.switchgnn.turn) {
            one = 1;
        })
    ALU_0(opened_round, open_round,
        if (value.lo < hdr.switchgnn.turn) {
            value.lo = hdr.switchgnn.turn;
        })

    flag_t  opened;

    action come_around() {
        DROP(standard_metadata)
        meta.work.cell = meta.loop.pool;
        meta.work.beat = meta.loop.cell;
    }

    // It raises the heartbeats of its worker, or of those below a leaf.
    action check() {
        meta.outcome = meta.loop.verdict;
        meta.decides = 1;
        meta.work.first = 1;
        meta.work.beats = hdr.barrier.workers & meta.worker_bit;
    }

    action begin(outcome_t outcome, bit<1> decides, bit<1> looks, bit<1> adds, bit<1> hears) {
        meta.outcome = outcome;
        meta.decides = decides;
        meta.work.looks = looks;
        meta.work.adds = adds;
        meta.work.hears = hears;
        meta.work.beats = ~hdr.barrier.workers & meta.worker_bit;
    }

    table begins {
        key = { meta.loop.step: ternary; hdr.switchgnn.kind: ternary; }
        actions = { check; begin; }
        const default_action = begin(PENDING, 0, 0, 0, 0);
        SIZE(4)
        const entries = {
            (step_t.FIRST, _): check();
            (step_t.COLLECT, kind_t.ADVANCE): begin(PENDING, 0, 1, 0, 0);
            (step_t.COLLECT, _): begin(DONE_COLLECTED, 1, 1, 1, 1);
            (step_t.LATE, _): begin(DONE_REPEATED, 1, 0, 0, 1);
        }
    }

    action differ() {
        meta.work.window_session = meta.work.window ^ meta.loop.tag_hi;
        meta.work.other_round = meta.work.tag_hi ^ meta.loop.tag_hi;
        meta.work.other_session = meta.work.tag_hi ^ meta.loop.tag_hi;
        meta.work.early_features = meta.work.following_first ^ hdr.done.first;
        meta.work.following_next = meta.work.following_next ^ hdr.done.next;
        meta.work.known = meta.work.known ^ meta.loop.tag_hi;
        meta.work.number = meta.work.number ^ hdr.switchgnn.dst_id;
        // The tag of block 0 has only its pool.
        meta.work.tag_lo = meta.work.tag_lo & ~POOL_MASK;
    }

    action mask() {
        meta.work.window_session = meta.work.window_session & SESSION_BITS;
        meta.work.other_session = meta.work.other_session & SESSION_BITS;
        meta.work.early_features = meta.work.early_features & EARLY_FEATURES;
        meta.work.known = meta.work.known & SESSION_BITS;
    }

    action find(bit<1> known, bit<1> passed, bit<1> beyond) {
        meta.window_known = known;
        meta.passed = passed;
        meta.beyond_window = beyond;
    }

    // Where the tag is: by the window, or if that is of another session by what is collected.
    table position {
        key = {
            meta.loop.no_window: ternary; meta.work.window_session: ternary;
            meta.work.window_newer: ternary; meta.work.window_same: ternary;
            meta.work.newer: ternary; meta.work.same: ternary; meta.work.other_session: ternary;
            hdr.done.block: ternary; meta.loop.any_tag: ternary;
        }
        actions = { find; }
        const default_action = find(0, 0, 0);
        SIZE(11)
        const entries = {
            (0, 0, 1, _, _, _, _, _, _): find(1, 0, 1);
            (0, 0, _, 0, _, _, _, _, _): find(1, 1, 0);
            (0, 0, _, _, _, _, _, _, _): find(1, 0, 0);
            (_, _, _, _, _, 0, 0, _, 0): find(0, 0, 1);
            (_, _, _, _, 1, 0, _, 0, 0): find(0, 0, 0);
            (_, _, _, _, _, 0, _, 0, 0): find(0, 1, 0);
            (_, _, _, _, _, 0, _, _, 0): find(0, 0, 1);
            (_, _, _, _, 0, 0, _, _, _): find(0, 1, 0);
            (_, _, _, _, _, 0, _, _, _): find(0, 0, 0);
            (_, _, _, _, _, _, _, 0, _): find(0, 0, 0);
            (_, _, _, _, _, _, _, _, 0): find(0, 0, 1);
        }
    }

    action close() { meta.closed = 1; }

    // Whether all have begun the round.
    table opening {
        key = {
            opened: ternary; meta.loop.no_window: ternary; meta.work.window_session: ternary;
            meta.work.other_round: ternary; meta.work.tag_lo: ternary; meta.work.newer: ternary;
        }
        actions = { close; NoAction; }
        const default_action = NoAction;
        SIZE(5)
        const entries = {
            (1, _, _, _, _, _): close();
            (_, 0, 0, _, _, _): NoAction();
            (_, _, _, 0, 0, _): NoAction();
            (_, _, _, 0, _, _): close();
            (_, _, _, _, _, 0): close();
        }
    }

    action suspect() { meta.wrong_incarnation = 1; }

    table process {
        key = {
            meta.leaves_below: ternary; meta.work.known: ternary; meta.work.number: ternary;
            hdr.switchgnn.block_id: ternary; meta.work.later: ternary;
        }
        actions = { suspect; NoAction; }
        const default_action = NoAction;
        SIZE(4)
        const entries = {
            (0, 0, 0, _, _): NoAction();
            (0, 0, _, 0, 1): NoAction();
            (0, 0, _, _, _): suspect();
        }
    }

    action disagree() { meta.disagrees = 1; }

    // Whether what comes next is what the first worker said.
    table next {
        key = {
            meta.work.same: ternary;
            meta.work.following_next: ternary; meta.work.early_features: ternary;
        }
        actions = { disagree; NoAction; }
        const default_action = disagree;
        SIZE(2)
        const entries = {
            (0, _, _): NoAction();
            (_, 0, 0): NoAction();
        }
    }

    // From above: what comes next is what the first worker said.
    action follow() {
        hdr.done.next = meta.work.following_next;
        hdr.done.move_hi = meta.loop.tag_hi;
    }

    action follow_to_next_round() { hdr.done.move_hi = meta.loop.tag_hi + 1; }

    apply {
        come_around();
        begins.apply();
        if (meta.loop.step == step_t.FIRST) {
            RUN_4(compare_window, meta.loop.pool, meta.work.window_newer, meta.work.window_same,
                  meta.work.window, meta.work.unused)
            RUN_4(compare, meta.loop.pool, meta.work.newer, meta.work.same, meta.work.tag_hi,
                  meta.work.tag_lo)
            RUN_3(read_process, meta.loop.worker, meta.work.later, meta.work.known,
                  meta.work.number)
            RUN_2(read_following, meta.loop.pool, meta.work.following_next,
                  meta.work.following_first)
            RUN(read_opened, meta.loop.cell, opened)
            differ();
            mask();
            position.apply();
            opening.apply();
            next.apply();
            process.apply();
            if (meta.outcome == PENDING) {
                if (meta.beyond_window == 1) {
                    meta.outcome = WRONG_TAG;
                } else if (meta.wrong_incarnation == 1) {
                    meta.outcome = WRONG_INCARNATION;
                }
            }
        } else if (meta.loop.step == step_t.COLLECT) {
            if (hdr.switchgnn.kind == kind_t.ADVANCE) {
                RUN(match, meta.loop.pool, meta.work.same)
                RUN_2(read_following, meta.loop.pool, meta.work.following_next,
                      meta.work.following_first)
                follow();
                if (meta.work.following_first[17:17] == 1) {
                    follow_to_next_round();
                }
                if (meta.work.following_first[16:16] == 1) {
                    hdr.switchgnn.echo = 1;
                }
            } else {
                RUN_2(claim, meta.loop.pool, meta.work.newer, meta.work.same)
                if (meta.work.newer == 1) {
                    RUN_0(write_following, meta.loop.pool)
                }
                if (hdr.switchgnn.echo == 1) {
                    RUN_0(announce_process, meta.loop.worker)
                } else {
                    RUN_0(write_process, meta.loop.worker)
                }
            }
        } else if (meta.loop.step == step_t.CLOSE) {
            RUN_0(move_window, meta.loop.pool)
            RUN_0(open_round, meta.loop.cell)
        }
        round_start.apply(hdr, meta);
        if (meta.loop.step == step_t.FIRST && meta.outcome == PENDING && meta.passed == 0
                && meta.disagrees == 1) {
            meta.outcome = WRONG_NEXT;
        }
        if (meta.loop.step == step_t.FIRST && meta.outcome == PENDING) {
            meta.work.hears = 1;
        }
    }
}

// What a pass of a `done` ends with. Must be applied after Barrier, Collected and Heartbeat.
control Conclusion(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    action go_around(step_t step) {
        meta.loop.step = step;
        standard_metadata.egress_spec = meta.loop.to;
    }

    // To the window of features, with what comes next.
    action move_below() {
        meta.loop.step = step_t.MOVE;
        meta.loop.tag_hi = hdr.done.move_hi;
        meta.loop.tag_lo = hdr.done.next;
        standard_metadata.egress_spec = meta.loop.lane;
    }

    action move(bit<8> flags) {
        move_below();
        meta.loop.flags = flags;
        hdr.barrier.workers = meta.work.after;
    }

    action pass_down() {
        hdr.switchgnn.echo = 0;
        hdr.done.setInvalid();
        standard_metadata.mcast_grp = meta.loop.group;
    }

    // To the switch above, as a worker does, with the maximum of the tag's own round only.
    action report(bit<32> reporter) {
        hdr.switchgnn.dst_id = reporter;
        hdr.switchgnn.src_id = meta.switch_number;
        hdr.barrier.workers = meta.work.beats;
        hdr.done.setInvalid();
        standard_metadata.egress_spec = meta.above_port;
    }

    action report_own() { report(hdr.switchgnn.src_id); }

    action report_largest() {
        report(meta.work.reporter & 0xffff);
        hdr.barrier.magnitude = meta.work.largest;
    }

    action answer(leave_t leave, count_t refusal) {
        meta.loop.leave = leave;
        meta.loop.count = refusal;
        standard_metadata.egress_spec = meta.loop.port;
    }

    action tell() {
        meta.loop.destination = meta.work.reporter & 0xffff;
        hdr.barrier.magnitude = meta.work.largest;
        hdr.barrier.round = meta.work.newest_round & 0xffffff;
    }

    action tell_one() {
        answer(leave_t.ADVANCE, REFUSAL_NONE);
        tell();
    }

    action tell_all() {
        tell_one();
        standard_metadata.mcast_grp = meta.loop.group;
    }

    action tell_late() {
        tell_one();
        hdr.barrier.workers = meta.members;
    }

    action wait(leave_t leave) {
        answer(leave, REFUSAL_NONE);
        tell();
        hdr.barrier.workers = meta.work.after | meta.elsewhere;
        hdr.waiting.setValid();
        hdr.waiting.heartbeats = meta.work.beats;
        hdr.ipv4.total_len = WAITING_LENGTH;
    }

    action refuse(count_t refusal, bit<32> culprit) {
        answer(leave_t.WAITING, refusal);
        meta.loop.destination = culprit;
        hdr.barrier.magnitude = 0;
        hdr.barrier.round = 0;
        hdr.barrier.workers = meta.elsewhere;
        hdr.waiting.setValid();
        hdr.waiting.heartbeats = 0;
        hdr.ipv4.total_len = WAITING_LENGTH;
    }

    action refuse_magnitude() {
        refuse(REFUSAL_MAGNITUDE, 0);
        tell();
        meta.loop.destination = hdr.done.first & 0xffff;
    }

    action refuse_next() {
        refuse(REFUSAL_NEXT, 0);
        tell();
        meta.loop.destination = meta.work.following_first & 0xffff;
    }

    action refuse_window() {
        refuse(REFUSAL_TAG, NOBODY);
        hdr.barrier.round = meta.work.window & 0xffffff;
    }

    action refuse_collected() {
        refuse(REFUSAL_TAG, 0);
        hdr.barrier.round = meta.work.tag_hi & 0xffffff;
        meta.loop.destination = meta.work.following_first & 0xffff;
    }

    table conclusion {
        key = {
            meta.loop.step: ternary; hdr.switchgnn.kind: ternary; meta.outcome: ternary;
            meta.passed: ternary; meta.complete: ternary; meta.loop.flags: ternary;
            meta.window_known: ternary; meta.work.other_session: ternary;
            meta.above_port: ternary; meta.work.round_differs: ternary;
        }
        actions = {
            go_around; move; move_below; pass_down; report_own; report_largest; tell_one; tell_all;
            tell_late; wait; refuse; refuse_magnitude; refuse_next; refuse_window;
            refuse_collected; NoAction;
        }
        const default_action = NoAction;
        SIZE(23)
        const entries = {
            (step_t.CLOSE, kind_t.ADVANCE, _, _, _, _, _, _, _, _): pass_down();
            (step_t.CLOSE, _, _, _, _, 0, _, _, _, _): tell_all();
            (step_t.CLOSE, _, _, _, _, _, _, _, _, _): tell_one();
            (step_t.COLLECT, kind_t.ADVANCE, _, _, 1, _, _, _, _, _): move_below();
            (step_t.COLLECT, kind_t.ADVANCE, _, _, _, _, _, _, _, _): pass_down();
            (step_t.COLLECT, _, DONE_REPEATED, _, 1, _, _, _, 0, _): move(DONE_AGAIN);
            (step_t.COLLECT, _, _, _, 1, _, _, _, 0, _): move(0);
            (step_t.COLLECT, _, _, _, 1, _, _, _, _, 0): report_largest();
            (step_t.COLLECT, _, _, _, 1, _, _, _, _, _): report_own();
            (step_t.COLLECT, _, DONE_REPEATED, _, _, _, _, _, _, _): wait(leave_t.WAITING);
            (step_t.COLLECT, _, _, _, _, _, _, _, _, _): NoAction();
            (step_t.LATE, _, _, _, _, _, _, _, 0, _): tell_late();
            (step_t.LATE, _, _, _, _, _, _, _, _, 0): report_largest();
            (step_t.LATE, _, _, _, _, _, _, _, _, _): report_own();
            (_, _, PENDING, 1, _, _, _, _, _, _): go_around(step_t.LATE);
            (_, _, PENDING, _, _, _, _, _, _, _): go_around(step_t.COLLECT);
            (_, _, WRONG_MAGNITUDE, _, _, _, _, _, _, _): refuse_magnitude();
            (_, _, WRONG_NEXT, _, _, _, _, _, _, _): refuse_next();
            (_, _, WRONG_INCARNATION, _, _, _, _, _, _, _): refuse(REFUSAL_INCARNATION, 0);
            (_, _, WRONG_TAG, _, _, _, 1, _, _, _): refuse_window();
            (_, _, WRONG_TAG, _, _, _, _, 0, _, _): refuse_collected();
            (_, _, WRONG_TAG, _, _, _, _, _, _, _): refuse(REFUSAL_TAG, NOBODY);
            (_, _, _, _, _, _, _, _, _, _): refuse(REFUSAL_NONE, 0);
        }
    }

    apply {
        if (meta.loop.step == step_t.COLLECT && meta.repeated == 1) {
            meta.outcome = DONE_REPEATED;
        }
        conclusion.apply();
        if (meta.loop.leave != leave_t.AS_IT_IS) {
            hdr.done.setInvalid();
        }
    }
}
