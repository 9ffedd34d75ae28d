// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The block barrier. Workers report `done`; the switch keeps one bit for each
// and multicasts `advance` when the last comes in. Bits, not a count: a `done`
// that the network repeats changes nothing. A `done` for a later block than the
// one being collected proves that the earlier one is complete, so a switch that
// was restarted finds its place by itself (invariant 5).
//
// Block 0 of a round is its opening. Its `done`s carry each worker's largest
// magnitude and its `advance` the maximum: the bits of non-negative float32
// numbers compare like integers. Later `done`s carry the maximum that the workers
// know by then, so that a restarted switch learns it again.
//
// A leaf never says of its own accord that all are done: when its own workers are,
// it reports so to the spine, as a worker does, and once more whenever one of them
// asks again. The spine answers, and the leaf tells its workers.
#ifndef _BARRIER_
#define _BARRIER_

#include "headers.p4"
#include "metadata.p4"

control Barrier(inout headers_t hdr,
                inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    register<tag_t>(1) collected_tag;
    register<worker_set_t>(1) collected;
    register<bit<48>>(1) opened;  // session ++ round of the newest opening
    register<bit<32>>(1) opened_magnitude;

    tag_t tag;
    worker_set_t before;
    worker_set_t after;
    bit<48> opening;
    bit<32> magnitude;

    action answer(kind_t kind) {
        hdr.switchgnn.kind = kind;
        hdr.barrier.magnitude = magnitude;
        hdr.barrier.plan = meta.plan;
        hdr.barrier.round = opening[31:0];
        hdr.barrier.workers = after | meta.elsewhere;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    // The maximum of another round than this tag's is not for it.
    action report() {
        hdr.switchgnn.src_id = meta.switch_number;
        hdr.barrier.magnitude = meta.tag[79:32] == opening ? magnitude : hdr.barrier.magnitude;
        standard_metadata.egress_spec = meta.above_port;
    }

    // A later tag is being collected, which proves that all are done with this one.
    action repeat() {
        before = meta.members;
        after = meta.members;
    }

    action collect() {
        collected.read(before, 0);
        before = tag == meta.tag ? before : 0;
        after = before | meta.worker_bit;
        collected_tag.write(0, meta.tag);
        collected.write(0, after);
    }

    action advance_all() {
        standard_metadata.mcast_grp = ALL_WORKERS_GROUP;
    }

    action read_opening() {
        opened.read(opening, 0);
        opened_magnitude.read(magnitude, 0);
    }

    action open_round() {
        magnitude = opening == meta.tag[79:32] && magnitude > hdr.barrier.magnitude
            ? magnitude : hdr.barrier.magnitude;
        opening = meta.tag[79:32];
        opened.write(0, opening);
        opened_magnitude.write(0, magnitude);
    }

    apply {
        if (meta.from_above == 1) {
            meta.outcome = PASSED_ON;
            standard_metadata.mcast_grp = ALL_WORKERS_GROUP;
        } else if (meta.is_worker == 0 || hdr.switchgnn.src_id != (bit<32>) meta.worker) {
            meta.outcome = WRONG_PORT;
        } else if (hdr.barrier.plan != meta.plan) {
            meta.outcome = WRONG_PLAN;
            read_opening();
            after = 0;
            answer(kind_t.WAITING);
        } else {
            read_opening();
            if (meta.tag[79:32] >= opening) {
                open_round();
            }
            collected_tag.read(tag, 0);
            if (meta.tag < tag) {
                repeat();
            } else {
                collect();
            }
            meta.outcome = before == after ? DONE_REPEATED : DONE_COLLECTED;
            if (after == meta.members && meta.above_port != 0) {
                report();
            } else if (after == meta.members) {
                answer(kind_t.ADVANCE);
                if (meta.outcome == DONE_COLLECTED) {
                    advance_all();
                }
            } else if (meta.outcome == DONE_REPEATED) {
                answer(kind_t.WAITING);
            }
        }
    }
}

#endif
