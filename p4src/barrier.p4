// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The block barrier. Workers report `done`; the switch keeps one bit for each
// and multicasts `advance` when the last comes in. Bits, not a count: a `done`
// that the network repeats changes nothing. One for another tag than that whose turn it is
// (Turn) is answered, if all have passed it, or else refused. Only a switch that does not know whose
// turn it is takes it: there a `done` for a later block than the one being collected proves
// that the earlier one is complete, so a switch that was restarted finds its place by
// itself (invariant 5).
//
// In a new session the first `done` says which round is opened, as rounds may begin with any number
// from 1.
// A worker that then opens another one is refused, and hears who was the first.
//
// The last `done` of a round may let features of the next one's first block in at once, with Echo: then
// the opening is collected while they come (Turn).
//
// Block 0 of a round is its opening. Its `done`s carry each worker's largest magnitude and
// its `advance` the maximum (Opening). What is refused gets WAITING, with the reason in
// Count.
//
// A leaf never says of its own accord that all are done: when its own workers are,
// it reports so to the spine, as a worker does, and once more whenever one of them
// asks again. The spine answers, and the leaf tells its workers.
#ifndef _BARRIER_
#define _BARRIER_

#include "headers.p4"
#include "metadata.p4"
#include "incarnation.p4"
#include "opening.p4"
#include "pulse.p4"

control Barrier(inout headers_t hdr,
                inout metadata_t meta,
                inout standard_metadata_t standard_metadata)
               (register<tag_t> turn, register<tag_t> early) {
    Incarnation() incarnation;
    Opening()     opening;
    Pulse()       pulse;

    register<tag_t>(1) collected_tag;
    register<worker_set_t>(1) collected;
    // What comes next ++ the worker that has said so first.
    register<bit<65>>(1) following;

    tag_t tag;
    bit<65> first;
    bit<33> next;  // whether it is of the next round, while that is opened ++ block ++ fragment
    tag_t following_tag;
    worker_set_t held;
    worker_set_t before;
    worker_set_t after;
    bit<1> passed;
    bit<1> closed;
    bit<1> opens;

    action answer(kind_t kind) {
        hdr.switchgnn.kind = kind;
        hdr.switchgnn.session = meta.loop.session[7:0];
        hdr.switchgnn.dst_id = meta.largest[31:0];
        hdr.switchgnn.count = 0;
        hdr.switchgnn.feature_group = 0;
        hdr.switchgnn.echo = 0;
        hdr.barrier.magnitude = meta.largest[63:32];
        hdr.barrier.plan = meta.plan;
        hdr.barrier.round = meta.opening[31:0];
        hdr.barrier.workers = after | meta.elsewhere;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    // It says who is done, and the pulses of those that are not.
    action wait() {
        answer(kind_t.WAITING);
        hdr.waiting.setValid();
        hdr.waiting.pulses = meta.pulses;
        hdr.ipv4.total_len = WAITING_LENGTH;
    }

    action refuse(count_t refusal, bit<32> culprit) {
        after = 0;
        wait();
        hdr.switchgnn.dst_id = culprit;
        hdr.switchgnn.count = refusal;
    }

    // The maximum of another round than this tag's is not for it.
    action report() {
        hdr.switchgnn.dst_id = meta.tag[79:32] == meta.opening
            ? meta.largest[31:0] : hdr.switchgnn.src_id;
        hdr.switchgnn.src_id = meta.switch_number;
        hdr.barrier.magnitude = meta.tag[79:32] == meta.opening
            ? meta.largest[63:32] : hdr.barrier.magnitude;
        hdr.barrier.workers = meta.pulses;
        standard_metadata.egress_spec = meta.above_port;
    }

    // All are done with this one.
    action repeat() {
        before = meta.members;
        after = meta.members;
    }

    action collect() {
        after = before | meta.worker_bit;
        collected_tag.write(0, meta.tag);
        collected.write(0, after);
        following.write(0, next ++ (before == 0 ? meta.reporter : first[31:0]));
    }

    action look() {
        collected_tag.read(tag, 0);
        collected.read(held, 0);
        following.read(first, 0);
        before = tag == meta.tag ? held : 0;
        next = hdr.switchgnn.echo ++ hdr.switchgnn.count ++ hdr.switchgnn.feature_group;
    }

    // Whether all are done with this tag, and whether all have opened its round.
    action compare() {
        passed = meta.turn_known == 1
            ? (meta.tag < meta.turn ? 1w1 : 1w0)
            : (meta.tag < tag ? 1w1 : 1w0);
        closed = meta.turn_known == 1
            ? (meta.turn > meta.tag[79:32] ++ 32w0 ? 1w1 : 1w0)
            : (tag > meta.tag[79:32] ++ 32w0
               || (tag == meta.tag[79:32] ++ 32w0 && held == meta.members) ? 1w1 : 1w0);
        opens = meta.turn_known == 0 && meta.tag[31:0] == 0
            && (tag == meta.tag || tag[79:64] != meta.tag[79:64]) ? 1w1 : 1w0;
    }

    action next_turn() {
        following_tag = meta.tag[79:56]
            ++ (meta.tag[55:32] + (next[32:32] == 1 || next[31:16] == 0 ? 24w1 : 24w0)) ++ next[31:0];
        turn.write(0, next[32:32] == 1 ? following_tag[79:32] ++ 32w0 : following_tag);
        early.write(0, following_tag);
    }

    action advance_all() {
        standard_metadata.mcast_grp = ALL_WORKERS_GROUP;
    }

    apply {
        look();
        compare();
        if (meta.from_above == 1) {
            meta.outcome = PASSED_ON;
            standard_metadata.mcast_grp = ALL_WORKERS_GROUP;
            if (hdr.switchgnn.kind == kind_t.ADVANCE && before == meta.members) {
                next = first[64:32];
                next_turn();
            }
        } else if (meta.is_worker == 0 || hdr.switchgnn.src_id != (bit<32>) meta.worker) {
            meta.outcome = WRONG_PORT;
        } else if (hdr.barrier.plan != meta.plan) {
            meta.outcome = WRONG_PLAN;
        } else if (hdr.switchgnn.session != meta.loop.session[7:0]) {
            meta.outcome = WRONG_SESSION;
        } else if (meta.tag[63:32] == 0 || (meta.tag > meta.turn && opens == 0)) {
            meta.outcome = WRONG_TURN;
            // Who was the first is of interest where the first round is being opened. Before anybody
            // has said anything in a session there is no round.
            if (meta.turn_known == 0 && tag[79:64] == meta.tag[79:64]) {
                meta.turn = tag;
            } else {
                first = (bit<65>) NOBODY;
                meta.turn = meta.turn_known == 1 ? meta.turn : meta.loop.session ++ 64w0;
            }
            meta.opening = meta.turn[79:32];
        } else if (meta.leaves_below == 0) {
            incarnation.apply(hdr, meta);
        }
        if (meta.outcome == AGGREGATED) {
            opening.apply(hdr, meta, closed);
        }
        if (meta.outcome == AGGREGATED && passed == 0
                && before != 0 && first[64:32] != next) {
            meta.outcome = WRONG_NEXT;
        }
        if (meta.outcome == WRONG_PLAN || meta.outcome == WRONG_SESSION) {
            refuse(REFUSAL_NONE, 0);
        } else if (meta.outcome == WRONG_TURN) {
            refuse(REFUSAL_TURN, first[31:0]);
        } else if (meta.outcome == WRONG_INCARNATION) {
            refuse(REFUSAL_INCARNATION, 0);
        } else if (meta.outcome == WRONG_MAGNITUDE) {
            refuse(REFUSAL_MAGNITUDE, meta.reporter);
        } else if (meta.outcome == WRONG_NEXT) {
            refuse(REFUSAL_NEXT, first[31:0]);
        } else if (meta.outcome == AGGREGATED) {
            pulse.apply(hdr, meta);
            if (passed == 1) {
                repeat();
            } else {
                collect();
            }
            meta.outcome = before == after ? DONE_REPEATED : DONE_COLLECTED;
            if (after == meta.members && meta.above_port != 0) {
                report();
            } else if (after == meta.members) {
                if (passed == 0) {
                    next_turn();
                }
                answer(kind_t.ADVANCE);
                if (meta.outcome == DONE_COLLECTED) {
                    advance_all();
                }
            } else if (meta.outcome == DONE_REPEATED) {
                wait();
            }
        }
    }
}

#endif
