// The all-reduce; as ../reduce.p4. A part of a fragment passes Contributors, then the slots, and comes
// back to Contributors if its sum is not complete and its sender must hear of it.
#pragma once

#include "sets.p4"

// Of a packet that arrives.
control Reduce(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    index_t index;

    action pass_to_all() {
        meta.outcome = PASSED_ON;
        standard_metadata.mcast_grp = GROUP_OF(meta, WORKERS_GROUP);
    }

    // It comes back from above, for all workers.
    action pass_up() {
        meta.outcome = PASSED_ON;
        hdr.switchgnn.src_id = meta.switch_number;
        standard_metadata.egress_spec = meta.above_port;
    }

    action go_around() {
        meta.loop.step = step_t.REDUCE;
        meta.loop.any_time = 1;
        meta.loop.first_slot = 0;
        meta.loop.slot = index + (index_t) (SLOTS_PER_BANK - REDUCE_SLOTS);
        meta.loop.expected = meta.reduces;
        meta.loop.to = meta.set_port;
        meta.outcome = PENDING;
        standard_metadata.egress_spec = meta.set_port;
    }

    action refuse(outcome_t outcome) { meta.outcome = outcome; }

    JOIN_3(16, join_index, index, 4w0, meta.own.job, hdr.switchgnn.block_id[REDUCE_SLOT_BITS - 1:0])

    // What a worker sends.
    table contribution {
        key = {
            hdr.switchgnn.kind: ternary; hdr.switchgnn.count: ternary;
            meta.above_port: ternary; meta.leaves_below: ternary; meta.reduces: ternary;
        }
        actions = { pass_to_all; pass_up; go_around; refuse; }
        const default_action = refuse(WRONG_COUNT);
        SIZE(7)
        const entries = {
            (kind_t.REDUCED, _, 0, _, _): pass_to_all();
            (kind_t.REDUCED, _, _, _, _): pass_up();
            (_, _, _, _, 0): refuse(UNKNOWN_KIND);
            (kind_t.REDUCING, _, _, _, _): go_around();
            (_, 0, _, _, _): refuse(WRONG_COUNT);
            (_, _, _, 1, _): go_around();
            (_, 1, _, _, _): go_around();
        }
    }

    apply {
        join_index();
        if (meta.from_above == 1) {
            pass_to_all();
        } else if (!SPEAKS_FOR_ITSELF(hdr, meta)) {
            meta.outcome = WRONG_PORT;
        } else {
            contribution.apply();
        }
    }
}

// REDUCE counts each worker once per fragment. REPORT tells who has contributed, if a contribution is
// too late or has not completed the sum, or if the question comes alone.
control Contributors(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    REGISTER(ALL_REDUCE_SLOTS, fragment_tag)
    REGISTER_16(ALL_REDUCE_SLOTS, exponents)  // -, the largest
    REGISTER(JOB_CELLS, newest_fragment)

    CLAIM(fragment_tag, claim)
    READ(fragment_tag, look)
    ALU_16_0(exponents, restart,
        value.lo = hdr.switchgnn.feature_group;)
    ALU_16(exponents, raise,
        if (value.lo < hdr.switchgnn.feature_group) {
            value.lo = hdr.switchgnn.feature_group;
        }
        one = value.lo;)
    CLAIM(newest_fragment, claim_newest)
    READ(newest_fragment, read_newest)

    // Found late: early stages have just enough registers for those of barriers.
    index_t index;

    action come_around() {
        DROP(standard_metadata)
        meta.outcome = PENDING;
        meta.decides = 1;
        meta.work.looks = 1;
        meta.work.hears = 1;
        meta.work.newer = 0;
        meta.work.same = 0;
        meta.work.newest_hi = 0;
        meta.work.newest_lo = 0;
        meta.work.beats = 0;
        meta.work.beat = meta.loop.cell + (index_t) JOB_CELLS;
    }

    action find_slot() {
        meta.work.cell = index + (index_t) (POOL_CELLS - REDUCE_SLOTS);
        index = index - (index_t) REDUCE_SLOTS;
    }

    // The heartbeats that a question raises.
    action hear() {
        meta.work.first = 1;
        meta.work.beats = hdr.waiting.heartbeats & meta.worker_bit;
    }

    // Those that it lowers, and who has contributed, as a leaf knows.
    action answer() {
        meta.outcome = REDUCE_ASKED;
        meta.work.beats = ~hdr.waiting.heartbeats & meta.worker_bit;
        hdr.barrier.workers = hdr.barrier.workers & meta.worker_bit;
    }

    action begin_report() {
        hdr.barrier.setValid();
        hdr.barrier.workers = 0;
        hdr.waiting.setValid();
    }

    action contribute() { meta.work.adds = 1; }

    table begins {
        key = { meta.loop.step: exact; hdr.switchgnn.kind: exact; }
        actions = { hear; answer; begin_report; contribute; NoAction; }
        const default_action = NoAction;
        SIZE(4)
        const entries = {
            (step_t.REDUCE, kind_t.REDUCING): hear();
            (step_t.REDUCE, kind_t.REDUCE): contribute();
            (step_t.REPORT, kind_t.REDUCING): answer();
            (step_t.REPORT, kind_t.REDUCE): begin_report();
        }
    }

    action differ() {
        meta.work.tag_hi = meta.work.tag_hi ^ meta.loop.tag_hi;
        meta.work.tag_lo = meta.work.tag_lo ^ meta.loop.tag_lo;
    }

    action forget() {
        meta.work.newest_hi = 0;
        meta.work.newest_lo = 0;
    }

    JOIN_3(16, join_index, index, 4w0, meta.own.job, hdr.switchgnn.block_id[REDUCE_SLOT_BITS - 1:0])

    apply {
        come_around();
        join_index();
        find_slot();
        begins.apply();
        if (meta.loop.step == step_t.REDUCE && hdr.switchgnn.kind == kind_t.REDUCE) {
            RUN_2(claim, index, meta.work.newer, meta.work.same)
            if (meta.work.newer == 1) {
                RUN_0(restart, index)
                RUN_2(claim_newest, meta.own.cell, meta.work.newest_hi, meta.work.newest_lo)
            } else if (meta.work.same != 0) {
                RUN(raise, index, hdr.switchgnn.feature_group)
            }
        } else {
            RUN_2(look, index, meta.work.tag_hi, meta.work.tag_lo)
            RUN_2(read_newest, meta.own.cell, meta.work.newest_hi, meta.work.newest_lo)
            differ();
            if (meta.work.tag_hi == 0) {
                if (meta.work.tag_lo == 0) {
                    meta.work.same = 1;
                }
            }
        }
        if (meta.work.newest_hi[31:24] != meta.session[7:0]) {
            forget();
        }
    }
}

// What a pass of a part of a fragment ends with. Must be applied after Contributors, Collected and
// Heartbeat.
control Report(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    action report_next(outcome_t outcome) {
        meta.outcome = outcome;
        meta.loop.step = step_t.REPORT;
        standard_metadata.egress_spec = meta.loop.to;
    }

    // To its slot, from which the sum goes to all.
    action go_on(outcome_t outcome) {
        meta.loop.verdict = outcome;
        meta.loop.step = step_t.FIRST;
        meta.loop.leave = leave_t.REDUCED;
        meta.loop.group = GROUP_OF(meta, WORKERS_GROUP);
        standard_metadata.egress_spec = meta.loop.lane;
        meta.loop.lane = meta.loop.to;
        meta.loop.to = meta.loop.port;
    }

    // From which, as one contribution of all workers below, it goes to the switch above.
    action go_up(outcome_t outcome) {
        go_on(outcome);
        meta.loop.leave = leave_t.PART;
        meta.loop.group = 0;
        meta.loop.to = meta.above_port;
        hdr.switchgnn.src_id = meta.switch_number;
    }

    action report() {
        hdr.switchgnn.kind = kind_t.REDUCING;
        hdr.switchgnn.count = (count_t) REDUCE_SLOTS;
        hdr.switchgnn.feature_group = 0;
        hdr.barrier.plan = meta.plan;
        hdr.barrier.workers = hdr.barrier.workers | meta.work.after;
        hdr.waiting.heartbeats = meta.work.beats;
        hdr.ipv4.total_len = WAITING_LENGTH;
        EACH_GROUP(LOSE)
        standard_metadata.egress_spec = meta.loop.port;
    }

    action report_up() {
        report();
        hdr.switchgnn.src_id = meta.switch_number;
        standard_metadata.egress_spec = meta.above_port;
    }

    action report_to_all() {
        report();
        standard_metadata.mcast_grp = GROUP_OF(meta, WORKERS_GROUP);
    }

    table next {
        key = {
            meta.loop.step: ternary; hdr.switchgnn.kind: ternary;
            meta.work.newer: ternary; meta.work.same: ternary;
            meta.repeated: ternary; meta.above_port: ternary; hdr.switchgnn.resend: ternary;
        }
        actions = { report_next; go_on; go_up; report; report_up; report_to_all; }
        const default_action = report();
        SIZE(9)
        const entries = {
            (step_t.REDUCE, kind_t.REDUCING, _, _, _, _, _): report_next(PENDING);
            (step_t.REDUCE, _, 0, 0, _, _, _): report_next(REDUCE_STALE);
            (step_t.REDUCE, _, _, _, 1, 0, _): go_on(REDUCE_REPEATED);
            (step_t.REDUCE, _, _, _, 1, _, _): go_up(REDUCE_REPEATED);
            (step_t.REDUCE, _, _, _, _, 0, _): go_on(REDUCE_ADDED);
            (step_t.REDUCE, _, _, _, _, _, _): go_up(REDUCE_ADDED);
            (_, _, _, _, _, 0, 0): report();
            (_, _, _, _, _, 0, _): report_to_all();
            (_, _, _, _, _, _, _): report_up();
        }
    }

    // The newest fragment has 40 bits, those of the round and the block: the upper ones are in Magnitude.
    JOIN_2(32, join_magnitude, hdr.barrier.magnitude, 24w0, meta.work.newest_hi[23:16])
    JOIN_2(32, join_round, hdr.barrier.round, meta.work.newest_hi[15:0], meta.work.newest_lo[22:7])

    apply {
        next.apply();
        if (hdr.switchgnn.kind == kind_t.REDUCING) {
            join_magnitude();
            join_round();
        }
    }
}
