// The path of a frame through the switch: `apply` is the table of contents. A control's tables are
// filled by the class in the file of the same name in controller/controls/.
//
// All state is in ingress: BMv2 runs it in one thread, egress in four, and ignores @atomic.
// https://github.com/p4lang/behavioral-model/blob/main/docs/simple_switch.md
#pragma once

#include "metadata.p4"
#include "job.p4"
#include "session.p4"
#include "forward.p4"
#include "barrier.p4"
#include "congestion.p4"
#include "access.p4"
#include "reduce.p4"
#include "fanout.p4"
#include "dedup.p4"
#include "outcome.p4"
#include "payload.p4"
#include "bundle.p4"
#include "loop.p4"

control SwitchIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    register<tag_t>(JOB_CELLS * MAX_POOLS) barrier_tag;
    register<tag_t>(JOB_CELLS * MAX_POOLS) feature_tag;

    // Grouped like the path below.
    WorkerPorts() worker; Jobs() job; Session() session; Tier() tier; Admission() admission;
    Forward() forward; Notice() notice; Access() access; Reduce() reduce;
    TagWindow(barrier_tag, feature_tag) tag_window;
    Barrier(barrier_tag, feature_tag) barrier;
    Fanout() fanout; OwnSlot() own_slot; Dedup() dedup; Accepted() accepted; Outcome() outcome;
    Rows() rows; Widen() widen; Pad() pad; Spread() spread;
    Banks() banks; Result() result; Bundle() bundle;
    Loop() loop; Answer() answer; Reduction() reduction; Priority() priority;

    // mark_to_drop comes first: it also clears mcast_grp. A control that sets mcast_grp or
    // egress_spec later revives the packet.
    action arrive() {
        mark_to_drop(standard_metadata);
        meta.outcome = PENDING;
    }

    action find_width() {
        meta.frame_width = hdr.switchgnn.width;
        if (IS_PARTIAL(hdr.switchgnn.src_id) && meta.loop.rows != 0) {
            // One row, from a leaf.
            meta.frame_width = (width_t) hdr.switchgnn.feature_group;
        }
    }

    // Grows monotonically, whatever the workers do.
    action make_tag() {
        meta.tag = meta.session ++ 8w0 ++ hdr.switchgnn.round
            ++ hdr.switchgnn.fragment ++ hdr.switchgnn.block_id ++ hdr.switchgnn.pool
            ++ meta.frame_width;
        meta.oldest = EMPTY_OF(meta.tag);
        meta.newest = meta.oldest | 0xffffff;
    }

    action join() {
        meta.outcome = AGGREGATED;
        meta.adds = 1;
        meta.touches_slots = ~meta.loop.finished;
    }

    apply {
        arrive();
        if (meta.loop.pass_number == 0) {
            meta.loop.port = standard_metadata.ingress_port;
#ifdef STRAWMAN
            meta.now = standard_metadata.ingress_global_timestamp;
#endif
            worker.apply(meta, standard_metadata.ingress_port);
            job.apply(hdr, meta);
            session.apply(hdr, meta);
            find_width();
            make_tag();
            tier.apply(meta);
            admission.apply(hdr, meta, standard_metadata);
            if (meta.outcome == PENDING) {
                if (!hdr.switchgnn.isValid()) {
                    forward.apply(hdr, meta, standard_metadata);
                } else if (IS_REDUCE(hdr.switchgnn)) {
                    reduce.apply(hdr, meta, standard_metadata);
                } else {
                    tag_window.apply(hdr, meta);
                    if (meta.outcome == PENDING) {
                        if (hdr.barrier.isValid()) {
                            barrier.apply(hdr, meta, standard_metadata);
                        } else if (hdr.switchgnn.kind == kind_t.NOTICE) {
                            notice.apply(hdr, meta, standard_metadata);
                        } else {
                            access.apply(hdr, meta, standard_metadata);
                        }
                    }
                }
            }
        }
        if (meta.loop.finished == 0 && meta.outcome == PENDING
                && !IS_PARTIAL(hdr.switchgnn.src_id)) {
            fanout.apply(hdr, meta);
        } else if (meta.loop.finished == 0
                   && (meta.outcome == PENDING || meta.touches_slots == 1)) {
            own_slot.apply(meta);
        }
        // Most passes are later ones.
        if (meta.loop.pass_number != 0) {
            if (meta.outcome == PENDING) {
                join();
            }
        } else {
            if (meta.outcome == PENDING && hdr.switchgnn.count != 1
                    && !IS_PARTIAL(hdr.switchgnn.src_id)) {
                meta.outcome = WRONG_COUNT;
            }
            if (meta.outcome == PENDING) {
                dedup.apply(hdr, meta);
                accepted.apply(hdr, meta);
            }
            if (meta.outcome == PENDING) {
                join();
            }
            outcome.apply(meta.own.first_outcome + (bit<32>) meta.outcome);
            if (meta.touches_slots == 1) {
                rows.apply(hdr, meta);
                widen.apply(hdr, meta);
                pad.apply(hdr);
                if (meta.rows != 0 && meta.adds == 1 && !IS_PARTIAL(hdr.switchgnn.src_id)
                        && !ROWS_FILL_CHUNKS(meta)) {
                    spread.apply(hdr, meta);
                }
            }
        }
        if (meta.touches_slots == 1) {
            banks.apply(hdr, meta);
            if (meta.completed == 1 && !IS_REDUCE(hdr.switchgnn)) {
                result.apply(hdr, meta);
                bundle.apply(hdr, meta);
            }
        }
        if (meta.adds == 1) {
            loop.apply(hdr, meta, standard_metadata);
        } else if (IS_REDUCE(hdr.switchgnn)) {
            reduction.apply(hdr, meta, standard_metadata);
        } else {
            answer.apply(hdr, meta, standard_metadata);
        }
        priority.apply(hdr, meta, standard_metadata.priority, meta.dscp);
    }
}
