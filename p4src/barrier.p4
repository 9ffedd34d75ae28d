// The block barrier, and the window of tags that may pass: TagWindow for every packet, Barrier for
// each `done`.
#pragma once

#include "metadata.p4"

// Each pool has a unit in flight, and a window that ends with the tag after its last complete
// barrier: a later packet, which only a faulty worker sends, would take slots from the current unit.
// Features of a pool's first unit may arrive while the round is being started, so there is a latest
// tag for features besides.
//
// The switch knows neither the width of features nor the number of blocks and pools. Each `done`
// names the tag that follows it in its pool, by its block and fragment in Count and Feature_group,
// and Barrier requires all workers to agree.
//
// A restarted switch does not know its window, nor does a spine that no barrier passes. The
// controller sets `any_tag` there: until a barrier is complete, every tag is accepted. A leaf accepts
// them until the session ends, and the spine judges: a late copy of an old `done` brings an old ADVANCE.
// Must be applied on the first pass only, after Jobs and Session.
control TagWindow(in headers_t hdr, inout metadata_t meta)
            (register<tag_t> barrier_tag, register<tag_t> feature_tag) {
    apply {
        barrier_tag.read(meta.barrier_tag, meta.own.pool);
        feature_tag.read(meta.feature_tag, meta.own.pool);
        meta.window_known = SESSION_OF(meta.barrier_tag) == meta.session
            && (meta.any_tag == 0 || meta.above_port == 0) ? 1w1 : 1w0;
        if (meta.window_known == 0) {
            meta.barrier_tag = meta.session
                ++ (meta.any_tag == 1 ? 64w0xffffffffffffffff : 64w0);
            meta.feature_tag = meta.barrier_tag;
        }
        if (!hdr.barrier.isValid() && hdr.switchgnn.kind != kind_t.NOTICE
                && meta.from_above == 0
                && (meta.tag > meta.feature_tag || hdr.switchgnn.pool > meta.last_pool)) {
            meta.outcome = WRONG_TAG;
        }
    }
}

// A process that restarts in the middle of a session would get the sums of its predecessor: the
// switch has seen its sources under these tags. So each process sends a random number, its
// incarnation, in every `done`, and a new one may only join at the start of a later round than the
// latest of the one before, which its last `done` may have announced (Echo).
// Must be applied to a `done` of a worker, after Jobs and Session, not to one of a leaf.
control Incarnation(in headers_t hdr, inout metadata_t meta) {
    // session ++ round ++ number, of the latest round of the worker.
    register<bit<80>>(MAX_WORKERS) incarnation;

    bit<80> known;
    round_t until;

    apply {
        until = ROUND_OF(meta.tag) + (round_t) hdr.switchgnn.echo;
        incarnation.read(known, meta.own.worker);
        if (SESSION_OF(known) == meta.session && known[31:0] != hdr.switchgnn.dst_id
                && (hdr.switchgnn.block_id != 0 || ROUND_OF(meta.tag) <= ROUND_OF(known))) {
            meta.outcome = WRONG_INCARNATION;
        } else if (until > ROUND_OF(known)) {
            incarnation.write(meta.own.worker, until ++ hdr.switchgnn.dst_id);
        }
    }
}

// The largest magnitude of the newest round, and its worker. All scales follow from it: the bits of
// non-negative float32 numbers compare like integers.
//
// It may grow until all workers have started the round, and not afterwards: workers with different
// maxima would use different scales. Every `done` of a later block carries the magnitude that
// its worker knows. A switch that was restarted during the start of a round learns it from
// there; otherwise it must be the same. A leaf asks the switch above, which knows all workers.
// Must be applied to an admitted `done`, after Jobs and Session.
control RoundStart(in headers_t hdr, inout metadata_t meta, in bit<1> closed) {
    register<round_t>(JOB_CELLS) newest_round;
    register<bit<64>>(JOB_CELLS) largest;  // magnitude ++ worker

    action learn() {
        meta.newest_round = ROUND_OF(meta.tag);
        meta.largest = hdr.barrier.magnitude ++ meta.reporter;
        newest_round.write(meta.own.cell, meta.newest_round);
        largest.write(meta.own.cell, meta.largest);
    }

    apply {
        // A leaf names the worker with the largest magnitude.
        meta.reporter = meta.leaves_below == 1
            ? hdr.switchgnn.dst_id : (bit<32>) meta.worker;
        newest_round.read(meta.newest_round, meta.own.cell);
        largest.read(meta.largest, meta.own.cell);
        if (hdr.barrier.magnitude > meta.magnitude_limit) {
            meta.outcome = WRONG_MAGNITUDE;
        } else if (ROUND_OF(meta.tag) > meta.newest_round) {
            learn();
        } else if (ROUND_OF(meta.tag) == meta.newest_round) {
            if (closed == 0 || (hdr.switchgnn.block_id != 0 && meta.above_port != 0)) {
                if (hdr.barrier.magnitude > meta.largest[63:32]) {
                    learn();
                }
            } else if (hdr.switchgnn.block_id != 0
                       && hdr.barrier.magnitude != meta.largest[63:32]) {
                meta.outcome = WRONG_MAGNITUDE;
            }
        }
    }
}

// Signs of life. Each worker flips a bit, its heartbeat, and sends it in every `done`. The switch
// sends the latest bits to waiting workers: one whose bit changes is alive, however slow it is.
// Must be applied to an admitted `done`, after Jobs.
control Heartbeat(in headers_t hdr, inout metadata_t meta) {
    register<worker_set_t>(JOB_CELLS) heartbeats;

    action keep() {
        heartbeats.read(meta.heartbeats, meta.own.cell);
        meta.heartbeats = (meta.heartbeats & ~meta.worker_bit)
            | (hdr.barrier.workers & meta.worker_bit);
        heartbeats.write(meta.own.cell, meta.heartbeats);
    }

    apply { keep(); }
}

// Workers report `done`; the switch keeps one bit for each and multicasts `advance` with the
// last one. Bits, not a count: a repeated `done` changes nothing. A `done` for an earlier tag than
// the current one is answered, one for a later tag refused with WAITING, and the reason in Count.
// Only a switch that does not know its window accepts it: there it proves that the earlier block is
// complete, so a restarted switch finds the current tag by itself (invariant 5).
//
// Block 0 of a round is its start, in each pool (RoundStart). In a new session the first `done`
// chooses the round; a worker that then starts another one is refused, and the answer names the
// first worker.
//
// A leaf never decides that all are done: when its own workers are, it reports to the spine as a
// worker does, again whenever one of them asks again, and passes the answer on to its workers.
control Barrier(inout headers_t hdr,
                inout metadata_t meta,
                inout standard_metadata_t standard_metadata)
               (register<tag_t> barrier_tag, register<tag_t> feature_tag) {
    Incarnation() incarnation; RoundStart() round_start; Heartbeat() heartbeat;

    // By pool.
    register<tag_t>(JOB_CELLS * MAX_POOLS) collected_tag;
    register<worker_set_t>(JOB_CELLS * MAX_POOLS) collected;
    // What comes next ++ the first worker to choose it.
    register<bit<65>>(JOB_CELLS * MAX_POOLS) following;
    // The latest round that all have opened in a pool: its magnitude no longer grows in any.
    register<round_t>(JOB_CELLS) opened_round;

    bit<32> pool;
    tag_t tag;
    round_t opened;
    bit<65> first;
    bit<33> next;  // features of the next round come early ++ block ++ fragment
    tag_t following_tag;
    worker_set_t held; worker_set_t before; worker_set_t after;
    bit<1> passed; bit<1> closed; bit<1> starts;

    action answer(kind_t kind) {
        hdr.switchgnn.kind = kind;
        hdr.switchgnn.session = meta.session[7:0];
        hdr.switchgnn.dst_id = meta.largest[31:0];
        hdr.switchgnn.count = 0;
        hdr.switchgnn.feature_group = 0;
        hdr.switchgnn.echo = 0;
        hdr.barrier.magnitude = meta.largest[63:32];
        hdr.barrier.plan = meta.plan;
        hdr.barrier.round = meta.newest_round[31:0];
        hdr.barrier.workers = after | meta.elsewhere;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    // With the workers that are done, and the heartbeats of all.
    action wait() {
        answer(kind_t.WAITING);
        hdr.waiting.setValid();
        hdr.waiting.heartbeats = meta.heartbeats;
        hdr.ipv4.total_len = WAITING_LENGTH;
    }

    action refuse(count_t refusal, bit<32> culprit) {
        after = 0;
        wait();
        hdr.switchgnn.dst_id = culprit;
        hdr.switchgnn.count = refusal;
    }

    // With the maximum of the tag's own round only.
    action report() {
        hdr.switchgnn.dst_id = ROUND_OF(meta.tag) == meta.newest_round
            ? meta.largest[31:0] : hdr.switchgnn.src_id;
        hdr.switchgnn.src_id = meta.switch_number;
        hdr.barrier.magnitude = ROUND_OF(meta.tag) == meta.newest_round
            ? meta.largest[63:32] : hdr.barrier.magnitude;
        hdr.barrier.workers = meta.heartbeats;
        standard_metadata.egress_spec = meta.above_port;
    }

    action collect() {
        after = before | meta.worker_bit;
        collected_tag.write(pool, meta.tag);
        collected.write(pool, after);
        following.write(pool, next ++ (before == 0 ? meta.reporter : first[31:0]));
    }

    action look() {
        pool = meta.own.pool;
        collected_tag.read(tag, pool);
        collected.read(held, pool);
        following.read(first, pool);
        opened_round.read(opened, meta.own.cell);
        before = tag == meta.tag ? held : 0;
        next = hdr.switchgnn.echo ++ hdr.switchgnn.count ++ hdr.switchgnn.feature_group;
    }

    // Whether all are done with this tag, and whether all have started its round.
    action compare() {
        passed = meta.window_known == 1
            ? (meta.tag < meta.barrier_tag ? 1w1 : 1w0)
            : (meta.tag < tag ? 1w1 : 1w0);
        closed = opened >= ROUND_OF(meta.tag)
            || (meta.window_known == 0
                && (tag > START_OF(meta.tag)
                    || (tag == START_OF(meta.tag) && held == meta.members))) ? 1w1 : 1w0;
        starts = meta.window_known == 0 && meta.tag == START_OF(meta.tag)
            && (tag == meta.tag || SESSION_OF(tag) != SESSION_OF(meta.tag)) ? 1w1 : 1w0;
    }

    action move_window() {
        following_tag = meta.tag[79:56]
            ++ (meta.tag[55:32] + (next[32:32] == 1 || next[31:16] == 0 ? 24w1 : 24w0))
            ++ next[15:7] ++ next[31:16] ++ next[6:0];
        opened_round.write(meta.own.cell, ROUND_OF(meta.tag));
        barrier_tag.write(pool, next[32:32] == 1 ? START_OF(following_tag) : following_tag);
        feature_tag.write(pool, following_tag);
    }

    apply {
        look();
        compare();
        if (meta.from_above == 1) {
            meta.outcome = PASSED_ON;
            standard_metadata.mcast_grp = GROUP_OF(meta, WORKERS_GROUP);
            if (hdr.switchgnn.kind == kind_t.ADVANCE && before == meta.members) {
                next = first[64:32];
                move_window();
            }
        } else if (meta.own.job == 0) {
            meta.outcome = NO_JOB;
        } else if (!SPEAKS_FOR_ITSELF(hdr, meta)) {
            meta.outcome = WRONG_PORT;
        } else if (hdr.barrier.plan != meta.plan) {
            meta.outcome = WRONG_PLAN;
        } else if (OTHER_SESSION(hdr, meta)) {
            meta.outcome = WRONG_SESSION;
        } else if (NUMBER_OF(meta.tag) == 0 || hdr.switchgnn.pool > meta.last_pool
                   || (meta.tag > meta.barrier_tag && starts == 0)) {
            meta.outcome = WRONG_TAG;
            // While the first round is being started, the answer names the first worker. Before the
            // first `done` of a session there is no round.
            if (meta.window_known == 0 && SESSION_OF(tag) == SESSION_OF(meta.tag)) {
                meta.barrier_tag = tag;
            } else {
                first = (bit<65>) NOBODY;
                meta.barrier_tag = meta.window_known == 1
                    ? meta.barrier_tag : meta.session ++ 64w0;
            }
            meta.newest_round = ROUND_OF(meta.barrier_tag);
        } else if (meta.leaves_below == 0) {
            incarnation.apply(hdr, meta);
        }
        if (meta.outcome == PENDING) {
            round_start.apply(hdr, meta, closed);
        }
        if (meta.outcome == PENDING && passed == 0
                && before != 0 && first[64:32] != next) {
            meta.outcome = WRONG_NEXT;
        }
        if (meta.outcome == WRONG_PLAN || meta.outcome == WRONG_SESSION
                || meta.outcome == NO_JOB) {
            refuse(REFUSAL_NONE, 0);
        } else if (meta.outcome == WRONG_TAG) {
            refuse(REFUSAL_TAG, first[31:0]);
        } else if (meta.outcome == WRONG_INCARNATION) {
            refuse(REFUSAL_INCARNATION, 0);
        } else if (meta.outcome == WRONG_MAGNITUDE) {
            refuse(REFUSAL_MAGNITUDE, meta.reporter);
        } else if (meta.outcome == WRONG_NEXT) {
            refuse(REFUSAL_NEXT, first[31:0]);
        } else if (meta.outcome == PENDING) {
            heartbeat.apply(hdr, meta);
            if (passed == 1) {
                // All are done with this tag.
                before = meta.members;
                after = meta.members;
            } else {
                collect();
            }
            meta.outcome = before == after ? DONE_REPEATED : DONE_COLLECTED;
            if (after == meta.members && meta.above_port != 0) {
                report();
            } else if (after == meta.members) {
                if (passed == 0) {
                    move_window();
                }
                answer(kind_t.ADVANCE);
                if (meta.outcome == DONE_COLLECTED) {
                    standard_metadata.mcast_grp = GROUP_OF(meta, WORKERS_GROUP);
                }
            } else if (meta.outcome == DONE_REPEATED) {
                wait();
            }
        }
    }
}
