// The all-reduce of SwitchML (Sapio et al., NSDI 2021): a stream of fragments, of each of which
// every worker sends its part and gets the sum of all. There is no barrier: fragment n has the slot
// n modulo REDUCE_SLOTS of its job, and a worker sends fragment n + REDUCE_SLOTS once it has the sum of n.
//
// Where SwitchML has two copies of a slot and a bit in each packet, there is a tag with the number
// and the width of the fragment: a late packet can never be taken for a later fragment. A leaf sends
// the sum of its workers up, as one contribution of them all, and passes on what comes down.
#pragma once

#include "metadata.p4"
#include "payload.p4"

// Counts each worker once per fragment, and finds the slot. Must be applied on the first pass only,
// after Admission.
control Reduce(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    NoPayload() no_payload;

    // Of each slot: its fragment, who has contributed, and their largest exponent.
    register<tag_t>(ALL_REDUCE_SLOTS) fragment_tag;
    register<worker_set_t>(ALL_REDUCE_SLOTS) contributors;
    register<exponent_t>(ALL_REDUCE_SLOTS) exponents;
    register<tag_t>(JOB_CELLS) newest_fragment;
    register<worker_set_t>(JOB_CELLS) reduce_heartbeats;

    bit<32> index;
    tag_t tag;
    exponent_t exponent;

    action pass_to_all() {
        meta.outcome = PASSED_ON;
        standard_metadata.mcast_grp = GROUP_OF(meta, WORKERS_GROUP);
    }

    action look() {
        index = meta.own.first_reduce + ((bit<32>) hdr.switchgnn.block_id & (REDUCE_SLOTS - 1));
        fragment_tag.read(tag, index);
        contributors.read(meta.contributors, index);
        exponents.read(exponent, index);
        newest_fragment.read(meta.newest_fragment, meta.own.cell);
        reduce_heartbeats.read(meta.heartbeats, meta.own.cell);
    }

    // A leaf reports what it knows.
    action hear() {
        meta.outcome = REDUCE_ASKED;
        meta.heartbeats = (meta.heartbeats & ~meta.worker_bit)
            | (hdr.waiting.heartbeats & meta.worker_bit);
        reduce_heartbeats.write(meta.own.cell, meta.heartbeats);
        meta.contributors = meta.contributors | (hdr.barrier.workers & meta.worker_bit);
    }

    action touch() {
        meta.touches_slots = 1;
        meta.width = LANES_256;
        meta.destination_expected = meta.reduces;
        meta.destination_bank = 0;
        meta.destination_slot = (slot_t) (SLOTS_PER_BANK + index);
        meta.loop.first_slot = 0;
    }

    action contribute() {
        meta.outcome = REDUCE_ADDED;
        meta.contributors = meta.contributors | meta.worker_bit;
        fragment_tag.write(index, meta.tag);
        contributors.write(index, meta.contributors);
        exponents.write(index, hdr.switchgnn.feature_group[7:0]);
    }

    apply {
        if (meta.from_above == 1) {
            pass_to_all();
        } else if (!SPEAKS_FOR_ITSELF(hdr, meta)) {
            meta.outcome = WRONG_PORT;
        } else if (hdr.switchgnn.kind == kind_t.REDUCED) {
            // A worker that has the sum repeats it for one that cannot get it from the switch.
            if (meta.above_port == 0) {
                pass_to_all();
            } else {
                // It comes back from above, for all workers.
                meta.outcome = PASSED_ON;
                hdr.switchgnn.src_id = meta.switch_number;
                standard_metadata.egress_spec = meta.above_port;
            }
        } else {
            look();
            if (tag != meta.tag) {
                meta.contributors = 0;
                exponent = 0;
            }
            if (meta.reduces == 0) {
                meta.outcome = UNKNOWN_KIND;
            } else if (hdr.switchgnn.kind == kind_t.REDUCING) {
                hear();
            } else if (hdr.switchgnn.count == 0
                       || (meta.leaves_below == 0 && hdr.switchgnn.count != 1)) {
                meta.outcome = WRONG_COUNT;
            } else if (tag > meta.tag) {
                meta.outcome = REDUCE_STALE;
            } else {
                touch();
                if ((bit<16>) exponent > hdr.switchgnn.feature_group) {
                    hdr.switchgnn.feature_group = (bit<16>) exponent;
                }
                if ((meta.contributors & meta.worker_bit) == 0) {
                    contribute();
                    if (meta.tag > meta.newest_fragment) {
                        newest_fragment.write(meta.own.cell, meta.tag);
                    }
                } else {
                    meta.outcome = REDUCE_REPEATED;
                    hdr.switchgnn.count = 0;
                    no_payload.apply(hdr);
                }
            }
        }
    }
}

// Where the sum goes, or who has not contributed yet. Must be applied after Banks.
control Reduction(inout headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    NoPayload() no_payload;

    // The newest fragment has 40 bits: its upper ones are in Magnitude.
    action report() {
        hdr.switchgnn.kind = kind_t.REDUCING;
        hdr.switchgnn.count = (count_t) REDUCE_SLOTS;
        hdr.switchgnn.feature_group = 0;
        hdr.barrier.setValid();
        hdr.barrier.magnitude = (bit<32>) meta.newest_fragment[55:48];
        hdr.barrier.plan = meta.plan;
        hdr.barrier.round = meta.newest_fragment[47:32] ++ meta.newest_fragment[22:7];
        hdr.barrier.workers = meta.contributors;
        hdr.waiting.setValid();
        hdr.waiting.heartbeats = meta.heartbeats;
        hdr.ipv4.total_len = WAITING_LENGTH;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    apply {
        if (meta.completed == 1) {
            meta.send_reduced = 1;
            if (meta.above_port != 0) {
                standard_metadata.egress_spec = meta.above_port;
            } else if (meta.outcome == REDUCE_ADDED) {
                standard_metadata.mcast_grp = GROUP_OF(meta, WORKERS_GROUP);
            } else {
                standard_metadata.egress_spec = standard_metadata.ingress_port;
            }
        } else if (meta.outcome == REDUCE_ASKED || meta.outcome == REDUCE_REPEATED
                   || meta.outcome == REDUCE_STALE) {
            if (SESSION_OF(meta.newest_fragment) != meta.session) {
                meta.newest_fragment = 0;
            }
            no_payload.apply(hdr);
            report();
            if (meta.above_port != 0) {
                hdr.switchgnn.src_id = meta.switch_number;
                standard_metadata.egress_spec = meta.above_port;
            } else if (hdr.switchgnn.resend == 1) {
                standard_metadata.mcast_grp = GROUP_OF(meta, WORKERS_GROUP);
            }
        }
    }
}
