// What a `done` says, as it arrives: the headers of the barrier's controls begin with it.
#pragma once

#include "metadata.p4"
#include "headers.p4"

// Beside the number of a worker.
const bit<32> EARLY_FEATURES = 0x10000;
const bit<32> NEXT_ROUND = 0x20000;
const bit<32> POOL_MASK = 0x60;
const bit<32> SESSION_BITS = 0xff000000;

control Done(inout headers_t hdr, inout metadata_t meta) {
    bit<32> round; bit<32> above;
    worker_t worker;

    action take() {
        hdr.done.setValid();
        // The tag of block 0 has only its pool.
        hdr.done.block = meta.loop.tag_lo & ~POOL_MASK;
        hdr.done.move_hi = meta.loop.tag_hi;
        hdr.done.above = 0;
        above = hdr.barrier.magnitude |-| meta.magnitude_limit;
        meta.loop.accepted = meta.session;
        meta.loop.group = GROUP_OF(meta, WORKERS_GROUP);
        meta.loop.to = meta.set_port;
    }

    action move_to_next_round() {
        hdr.done.move_hi = hdr.done.move_hi + 1;
        hdr.done.first = hdr.done.first | NEXT_ROUND;
    }

    // A leaf names the worker with the largest magnitude.
    action take_worker() { worker = meta.worker; }
    action take_its_worker() { worker = hdr.switchgnn.dst_id[15:0]; }

    action let_early_features_come() { hdr.done.first = hdr.done.first | EARLY_FEATURES; }

    JOIN_3(32, join_follow, hdr.done.next, hdr.switchgnn.feature_group[15:7],
           hdr.switchgnn.count, hdr.switchgnn.feature_group[6:0])
    JOIN_2(32, join_first, hdr.done.first, 16w0, worker)
    JOIN_2(32, join_round, round, 8w0, hdr.switchgnn.turn[23:0])

    apply {
        take();
        join_follow();
        if (meta.leaves_below == 1) {
            take_its_worker();
        } else {
            take_worker();
        }
        join_first();
        join_round();
        if (above != 0) {
            hdr.done.above = 1;
        }
        if (hdr.switchgnn.echo == 1) {
            let_early_features_come();
        }
        if (hdr.switchgnn.echo == 1 || hdr.switchgnn.count == 0) {
            move_to_next_round();
        }
        if (meta.from_above == 1) {
            meta.outcome = PASSED_ON;
        } else if (meta.own.job == 0) {
            meta.outcome = NO_JOB;
        } else if (!SPEAKS_FOR_ITSELF(hdr, meta)) {
            meta.outcome = WRONG_PORT;
        } else if (hdr.barrier.plan != meta.plan) {
            meta.outcome = WRONG_PLAN;
        } else if (meta.other_session == 1) {
            meta.outcome = WRONG_SESSION;
        } else if (round == 0 || meta.pool_above != 0) {
            meta.outcome = WRONG_TAG;
        }
        // The answer tells the plan that the switch serves.
        hdr.barrier.plan = meta.plan;
    }
}
