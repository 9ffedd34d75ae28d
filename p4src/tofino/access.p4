// Checks that a packet may touch what it names; as ../access.p4, for one switch.
#pragma once

#include "metadata.p4"
#include "../access.p4"
#include "../fanout.p4"

// The destination must expect partial sums of the sender; so only contributors ask for the sums of a
// vertex cut.
control Partial(in headers_t hdr, inout metadata_t meta) {
    action allow() { meta.allowed = 1; }

    // An entry for each sender, as no packet has room for a set beside its lanes.
    table partial {
        key = {
            meta.loop.block:        exact @name("block_id");
            hdr.switchgnn.dst_id:   exact @name("dst_id");
            meta.own.worker:        exact @name("worker");
        }
        actions = {
            allow;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = MAX_RESULTS;
    }

    apply {
        partial.apply();
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

// All that a packet's ids find, before anything is decided.
control Lookups(in headers_t hdr, inout metadata_t meta) {
    Destination() destination;
    Source()      source;
    Partial()     partial;
    Fanout()      fanout;
    OwnSlot()     own_slot;

    apply {
        if (hdr.switchgnn.kind == kind_t.FEATURE || hdr.switchgnn.kind == kind_t.FETCH) {
            source.apply(hdr, meta);
        }
        if (IS_PLAIN_FEATURE(hdr.switchgnn)) {
            fanout.apply(hdr, meta);
        } else {
            destination.apply(hdr, meta);
            partial.apply(hdr, meta);
            own_slot.apply(meta);
        }
    }
}

// A count above the expected one would complete or release the slot for all.
control Access(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    Recovery() recovery;

    COUNTER(MAX_WORKERS, releases)

    action measure() { meta.count_above = hdr.switchgnn.count |-| meta.destination_expected; }

    apply {
        measure();
        if (meta.outcome == PENDING) {
            if (meta.unknown_vertex == 1) {
                meta.outcome = UNKNOWN_VERTEX;
            } else if (hdr.switchgnn.kind == kind_t.FEATURE) {
                if (meta.source_port != meta.loop.port) {
                    meta.outcome = WRONG_PORT;
                } else if (IS_PARTIAL(hdr.switchgnn.src_id)) {
                    if (meta.allowed == 0) {
                        meta.outcome = WRONG_PORT;
                    } else if (hdr.switchgnn.count == 0 || meta.count_above != 0) {
                        meta.outcome = WRONG_COUNT;
                    }
                } else if (hdr.switchgnn.resend == 0) {
                    if (meta.unknown_block == 1) {
                        meta.outcome = UNKNOWN_BLOCK;
                    } else if (hdr.switchgnn.count != 1) {
                        meta.outcome = WRONG_COUNT;
                    }
                }
            } else if (meta.destination_group != 0) {
                if (meta.allowed == 0) {
                    meta.outcome = WRONG_PORT;
                }
            } else if (meta.destination_port != meta.loop.port) {
                meta.outcome = WRONG_PORT;
            }
        }
        if (meta.outcome == PENDING
                && (hdr.switchgnn.kind != kind_t.FEATURE || hdr.switchgnn.resend == 1)) {
            if (hdr.switchgnn.kind == kind_t.FETCH) {
                COUNT_ONE(releases, meta.own.worker)
            }
            recovery.apply(hdr, meta, standard_metadata);
        }
    }
}
