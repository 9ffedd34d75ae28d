// Checks that a packet may touch what it names; as ../access.p4. Here is decided what becomes of it if
// TagWindow lets its tag pass.
#pragma once

#include "metadata.p4"
#include "../access.p4"
#include "../congestion.p4"

control Access(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    Destination() destination;
    Source()      source;
    Notice()      notice;

    action allow() { meta.allowed = 1; }

    // The destination must expect partial sums of the sender; so only contributors ask for the sums of a
    // vertex cut. An entry for each sender, as no packet has room for a set beside its lanes.
    table partial {
        key = {
            meta.loop.block: exact @name("block_id"); hdr.switchgnn.dst_id: exact @name("dst_id");
            meta.own.worker: exact @name("worker");
        }
        actions = { allow; @defaultonly NoAction; }
        const default_action = NoAction;
        size = MAX_RESULTS;
    }

    port_t source_differs; port_t destination_differs;
    count_t above;

    action compare() {
        source_differs = meta.source_port ^ meta.loop.port;
        destination_differs = meta.destination_port ^ meta.loop.port;
        above = hdr.switchgnn.count |-| meta.destination_expected;
    }

    action refuse(outcome_t outcome) { meta.outcome = outcome; }

    // Whether the sender owns what it names. A count above the expected one would complete or release
    // the slot for all. A plain feature's block is looked up in the loop.
    table permission {
        key = {
            meta.from_above: ternary; hdr.switchgnn.kind: ternary; hdr.switchgnn.resend: ternary;
            meta.unknown_source: ternary; meta.unknown_destination: ternary;
            source_differs: ternary; destination_differs: ternary; meta.destination_above: ternary;
            hdr.switchgnn.src_id[31:30]: ternary @name("level");
            meta.allowed: ternary; meta.destination_group: ternary;
            hdr.switchgnn.count: ternary; above: ternary;
        }
        actions = { refuse; NoAction; }
        const default_action = refuse(WRONG_PORT);
        SIZE(15)
        const entries = {
            (_, _, _, _, 1, _, _, _, _, _, _, _, _): refuse(UNKNOWN_VERTEX);
            (1, kind_t.FETCH, _, 1, _, _, _, _, _, _, _, _, _): refuse(UNKNOWN_VERTEX);
            (1, _, _, _, _, _, _, _, _, _, _, _, _): NoAction();
            (_, kind_t.FEATURE, _, 1, _, _, _, _, _, _, _, _, _): refuse(UNKNOWN_VERTEX);
            (_, kind_t.FEATURE, _, _, _, 0, _, _, 2, 0, _, _, _): refuse(WRONG_PORT);
            (_, kind_t.FEATURE, _, _, _, 0, _, _, 2, _, _, 0, _): refuse(WRONG_COUNT);
            (_, kind_t.FEATURE, _, _, _, 0, _, _, 2, _, _, _, 0): NoAction();
            (_, kind_t.FEATURE, 1, _, _, 0, _, _, 0 &&& 2, _, _, _, _): NoAction();
            (_, kind_t.FEATURE, _, _, _, 0, _, _, 0 &&& 2, _, _, 1, _): NoAction();
            (_, kind_t.FEATURE, _, _, _, 0, _, _, _, _, _, _, _): refuse(WRONG_COUNT);
            (_, kind_t.FEATURE, _, _, _, _, _, _, _, _, _, _, _): refuse(WRONG_PORT);
            (_, kind_t.FETCH, _, 1, _, _, _, 0, _, _, _, _, _): refuse(UNKNOWN_VERTEX);
            (_, _, _, _, _, _, 0, _, _, _, 0, _, _): NoAction();
            (_, _, _, _, _, _, _, _, _, _, 0, _, _): refuse(WRONG_PORT);
            (_, _, _, _, _, _, _, _, _, 1, _, _, _): NoAction();
        }
    }

    action send_down(outcome_t outcome, bit<1> look_again) {
        meta.outcome = outcome;
        meta.loop.look_again = look_again;
        meta.loop.to = meta.destination_port;
        meta.loop.group = meta.destination_group;
        meta.loop.flags = FLOODS;
    }

    action relay() {
        meta.outcome = RESENT;
        meta.loop.to = meta.destination_port;
        meta.loop.group = meta.destination_group;
    }

    action pass_up() {
        meta.outcome = PASSED_ON;
        meta.loop.to = meta.destination_above;
    }

    // To the owner of the feature.
    action fetch(outcome_t outcome) {
        meta.outcome = outcome;
        meta.loop.to = meta.source_port;
        meta.loop.leave = leave_t.FETCH;
    }

    // From above, nobody is told of a sum that is missing.
    action recall() { meta.outcome = RECALLED; }

    action recall_for_worker() {
        meta.outcome = RECALLED;
        meta.loop.to = meta.loop.port;
    }

    // The leaves are asked for their parts.
    action recall_parts() {
        recall_for_worker();
        meta.loop.group = GROUP_OF(meta, WORKERS_GROUP);
    }

    // Between a worker and a switch above; and how a worker gets a sum that does not come: from another
    // one, or from the slot, which a recall looks at and a fetch releases.
    table recovery {
        key = {
            meta.from_above: ternary; hdr.switchgnn.kind: ternary; hdr.switchgnn.resend: ternary;
            meta.destination_above: ternary; meta.leaves_below: ternary;
        }
        actions = {
            send_down; relay; pass_up; fetch; recall; recall_for_worker; recall_parts; NoAction;
        }
        const default_action = pass_up;
        SIZE(10)
        const entries = {
            (1, kind_t.FETCH, _, _, _): fetch(PASSED_ON);
            (1, kind_t.RECALL, _, _, _): recall();
            (1, kind_t.MISSING, 1, _, _): send_down(PASSED_ON, 1);
            (1, kind_t.FEATURE, _, _, _): send_down(RESENT, 0);
            (1, _, _, _, _): send_down(PASSED_ON, 0);
            (_, kind_t.FEATURE, 0, _, _): NoAction();
            (_, kind_t.FEATURE, _, _, _): relay();
            (_, kind_t.FETCH, _, 0, _): fetch(FETCHED);
            (_, _, 1, 0, 1): recall_parts();
            (_, _, _, 0, _): recall_for_worker();
        }
    }

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
        } else if (hdr.switchgnn.kind != kind_t.FETCH || meta.from_above == 0) {
            destination.apply(hdr, meta);
            partial.apply();
        }
        find();
        if (hdr.switchgnn.kind == kind_t.NOTICE) {
            meta.loop.any_time = 1;
            notice.apply(hdr, meta, standard_metadata);
            meta.loop.to = standard_metadata.egress_spec;
            meta.loop.group = standard_metadata.mcast_grp;
        } else {
            if (meta.from_above == 1) {
                meta.loop.any_time = 1;
            }
            if (meta.pool_above != 0 && meta.from_above == 0) {
                meta.outcome = WRONG_TAG;
            } else {
                compare();
                permission.apply();
                if (meta.outcome == PENDING) {
                    recovery.apply();
                }
            }
        }
    }
}
