// Checks that a packet may touch what it names; as ../access.p4, for one switch. Here is decided what
// becomes of it if TagWindow lets its tag pass.
#pragma once

#include "metadata.p4"
#include "../access.p4"
#include "../congestion.p4"

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

// How a worker gets a sum that does not come: from another one, or from the slot, which a recall looks
// at and a fetch releases.
control Recovery(in headers_t hdr, inout metadata_t meta) {
    action relay() {
        meta.outcome = RESENT;
        meta.loop.to = meta.destination_port;
        meta.loop.group = meta.destination_group;
    }

    action fetch() {
        meta.outcome = FETCHED;
        meta.loop.to = meta.source_port;
        meta.loop.leave = leave_t.FETCH;
    }

    action recall() { meta.outcome = RECALLED; }

    apply {
        if (hdr.switchgnn.kind == kind_t.FEATURE) {
            relay();
        } else if (hdr.switchgnn.kind == kind_t.FETCH) {
            fetch();
        } else {
            recall();
        }
    }
}

// A count above the expected one would complete or release the slot for all. A plain feature's block is
// looked up in the loop.
control Access(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    Destination() destination;
    Source()      source;
    Partial()     partial;
    Notice()      notice;
    Recovery()    recovery;

    count_t above;

    action measure() { above = hdr.switchgnn.count |-| meta.destination_expected; }

    action find() {
        meta.loop.source = meta.source_index;
        meta.loop.slot = meta.destination_slot;
        meta.loop.expected = meta.destination_expected;
    }

    apply {
        if (hdr.switchgnn.kind == kind_t.FEATURE || hdr.switchgnn.kind == kind_t.FETCH) {
            source.apply(hdr, meta);
        }
        if (IS_PLAIN_FEATURE(hdr.switchgnn)) {
            meta.loop.plain = 1;
        } else {
            destination.apply(hdr, meta);
            partial.apply(hdr, meta);
        }
        measure();
        find();
        if (meta.pool_above != 0 && hdr.switchgnn.kind != kind_t.NOTICE) {
            meta.outcome = WRONG_TAG;
        } else if (hdr.switchgnn.kind == kind_t.NOTICE) {
            notice.apply(hdr, meta, standard_metadata);
            meta.loop.group = standard_metadata.mcast_grp;
        } else if (meta.unknown_vertex == 1) {
            meta.outcome = UNKNOWN_VERTEX;
        } else if (hdr.switchgnn.kind == kind_t.FEATURE) {
            if (meta.source_port != meta.loop.port) {
                meta.outcome = WRONG_PORT;
            } else if (IS_PARTIAL(hdr.switchgnn.src_id)) {
                if (meta.allowed == 0) {
                    meta.outcome = WRONG_PORT;
                } else if (hdr.switchgnn.count == 0 || above != 0) {
                    meta.outcome = WRONG_COUNT;
                }
            } else if (hdr.switchgnn.resend == 0 && hdr.switchgnn.count != 1) {
                meta.outcome = WRONG_COUNT;
            }
        } else if (meta.destination_group != 0) {
            if (meta.allowed == 0) {
                meta.outcome = WRONG_PORT;
            }
        } else if (meta.destination_port != meta.loop.port) {
            meta.outcome = WRONG_PORT;
        }
        if (meta.outcome == PENDING
                && (hdr.switchgnn.kind != kind_t.FEATURE || hdr.switchgnn.resend == 1)) {
            recovery.apply(hdr, meta);
        }
    }
}
