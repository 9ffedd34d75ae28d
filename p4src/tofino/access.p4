// Checks that a packet may touch what it names; as ../access.p4, for one switch.
#pragma once

#include "metadata.p4"
#include "../access.p4"

// The destination must expect partial sums of the sender; so only contributors ask for the sums of a
// vertex cut. A count above the expected one would complete or release the slot for all.
control Partial(in headers_t hdr, inout metadata_t meta) {
    count_t above;

    action allow() {
    }

    action refuse() { meta.outcome = WRONG_PORT; }

    // An entry for each sender, as no packet has room for a set beside its lanes.
    table partial {
        key = {
            meta.loop.block:        exact @name("block_id");
            hdr.switchgnn.dst_id:   exact @name("dst_id");
            meta.own.worker:        exact @name("worker");
        }
        actions = {
            allow;
            @defaultonly refuse;
        }
        const default_action = refuse;
        size = MAX_RESULTS;
    }

    action measure() { above = hdr.switchgnn.count |-| meta.destination_expected; }

    apply {
        measure();
        partial.apply();
        if (meta.outcome == PENDING && hdr.switchgnn.kind == kind_t.FEATURE) {
            if (hdr.switchgnn.count == 0 || above != 0) {
                meta.outcome = WRONG_COUNT;
            }
        }
    }
}

// How a worker gets a sum that does not come: a recall looks at the slot, a fetch releases it.
control Recovery(inout headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    action relay() {
        meta.outcome = RESENT;
        standard_metadata.egress_spec = meta.destination_port;
    }

    action relay_to_replicas() {
        meta.outcome = RESENT;
        standard_metadata.mcast_grp = meta.destination_group;
    }

    action fetch() {
        meta.outcome = FETCHED;
        standard_metadata.egress_spec = meta.source_port;
        meta.loop.leave = leave_t.FETCH;
        meta.contribution = RELEASED;
        meta.touches_slots = 1;
    }

    action recall() {
        meta.outcome = RECALLED;
        meta.looks = 1;
        meta.touches_slots = 1;
    }

    apply {
        if (hdr.switchgnn.kind == kind_t.FEATURE) {
            if (meta.destination_group != 0) {
                relay_to_replicas();
            } else {
                relay();
            }
        } else if (hdr.switchgnn.kind == kind_t.FETCH) {
            fetch();
        } else {
            recall();
        }
    }
}

control Access(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    Destination() destination;
    Source()      source;
    Partial()     partial;
    Recovery()    recovery;

    COUNTER(MAX_WORKERS, releases)

    bit<1> is_feature;
    bit<1> is_shared;

    apply {
        is_feature = 0;
        if (hdr.switchgnn.kind == kind_t.FEATURE) {
            is_feature = 1;
        }
        if (!IS_PLAIN_FEATURE(hdr.switchgnn)) {
            destination.apply(hdr, meta);
        }
        if (is_feature == 1 || hdr.switchgnn.kind == kind_t.FETCH) {
            source.apply(hdr, meta);
        }
        is_shared = 0;
        if (meta.destination_group != 0) {
            is_shared = 1;
        }
        if (meta.outcome == PENDING) {
            if (is_feature == 1) {
                if (meta.source_port != meta.loop.port) {
                    meta.outcome = WRONG_PORT;
                }
            } else if (is_shared == 0 && meta.destination_port != meta.loop.port) {
                meta.outcome = WRONG_PORT;
            }
        }
        if (meta.outcome == PENDING
                && ((is_feature == 1 && IS_PARTIAL(hdr.switchgnn.src_id))
                    || (is_feature == 0 && is_shared == 1))) {
            partial.apply(hdr, meta);
        }
        if (meta.outcome == PENDING && (is_feature == 0 || hdr.switchgnn.resend == 1)) {
            if (hdr.switchgnn.kind == kind_t.FETCH) {
                COUNT_ONE(releases, meta.own.worker)
            }
            recovery.apply(hdr, meta, standard_metadata);
        }
    }
}
