// The path of each copy of a packet that leaves on a port; as ../egress.p4.
#pragma once

#include "metadata.p4"
#include "headers.p4"
#include "loop.p4"
#include "../congestion.p4"
#include "../rewrite.p4"

// A copy for a port: a sum, an acknowledgement or another answer, or the packet as it came.
control Rewrite(inout headers_t hdr, inout metadata_t meta, in port_t egress_port) {
    Address() address;

    action make_sum() {
        hdr.switchgnn.dst_id = meta.loop.destination;
        hdr.switchgnn.count = meta.loop.count;
        hdr.switchgnn.echo = 0;
    }

    action make_whole() {
        hdr.switchgnn.kind = kind_t.SUM;
        hdr.switchgnn.src_id = 0;
        hdr.switchgnn.is_ack = 0;
    }

    // Of all workers below, to the switch above.
    action make_partial() {
        hdr.switchgnn.kind = kind_t.FEATURE;
        hdr.switchgnn.src_id = meta.loop.tag_lo;
        hdr.switchgnn.resend = 0;
        hdr.switchgnn.level = 1;
        hdr.switchgnn.feature_group = 0;
    }

    action make_reduced() {
        hdr.switchgnn.kind = kind_t.REDUCED;
        hdr.switchgnn.src_id = 0;
        hdr.switchgnn.count = meta.loop.count;
        hdr.switchgnn.resend = 0;
    }

    // Also what is otherwise the Count of an acknowledgement.
    action acknowledge_too() {
        hdr.switchgnn.is_ack = 1;
        hdr.switchgnn.src_id = (vertex_t) meta.loop.accepted;
    }

    action make_ack() {
        hdr.switchgnn.kind = kind_t.ACK;
        hdr.switchgnn.is_ack = 1;
        hdr.switchgnn.count = meta.loop.accepted;
    }

    action make_missing() {
        hdr.switchgnn.kind = kind_t.MISSING;
        hdr.switchgnn.count = meta.loop.count;
    }

    // To a `done`: a worker, and a refusal or 0.
    action answer(kind_t kind) {
        hdr.switchgnn.kind = kind;
        hdr.switchgnn.turn[31:24] = meta.loop.accepted[7:0];
        hdr.switchgnn.dst_id = meta.loop.destination;
        hdr.switchgnn.count = meta.loop.count;
        hdr.switchgnn.feature_group = 0;
        hdr.switchgnn.echo = 0;
    }

    apply {
        if (meta.loop.marked == 1) {
            hdr.switchgnn.ecn = 1;
        }
        if (meta.loop.leave == leave_t.SUM) {
            make_sum();
            if (meta.loop.tag_lo != 0) {
                make_partial();
            } else {
                make_whole();
                if (meta.loop.flags == SUM_ACKNOWLEDGES && egress_port == meta.loop.port) {
                    acknowledge_too();
                }
            }
        } else if (meta.loop.leave == leave_t.REDUCED) {
            make_reduced();
        } else if (meta.loop.leave == leave_t.PART) {
            hdr.switchgnn.count = meta.loop.count;
        } else if (meta.loop.leave == leave_t.ACK) {
            make_ack();
        } else if (meta.loop.leave == leave_t.MISSING
                   || (meta.loop.leave == leave_t.ASK && egress_port == meta.loop.port)) {
            make_missing();
        } else if (meta.loop.leave == leave_t.FETCH) {
            hdr.switchgnn.count = 0;
        } else if (meta.loop.leave == leave_t.ADVANCE) {
            answer(kind_t.ADVANCE);
        } else if (meta.loop.leave == leave_t.WAITING) {
            answer(kind_t.WAITING);
        }
        hdr.ipv4.dscp = meta.loop.dscp;
        hdr.ipv4.ttl = 64;
        meta.update_ipv4 = 1;
        meta.seal = 1;
        address.apply(hdr, egress_port);
    }
}

// A copy for the loop.
control Around(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    apply {
        if (meta.loop.step == step_t.HOP && standard_metadata.egress_rid == HARVEST_COPY) {
            meta.loop.step = step_t.HARVEST;
            meta.loop.hop = meta.loop.hop - 1;
        }
    }
}

control SwitchEgress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    PortShare()  port_share;
    Congestion() congestion;
    Around()     around;
    Rewrite()    rewrite;

    flag_t shared;

    apply {
        port_share.apply(hdr, standard_metadata, shared);
        congestion.apply(hdr, meta, standard_metadata, shared);
        if (standard_metadata.egress_port >= FIRST_LOOP_PORT) {
            around.apply(meta, standard_metadata);
            GO_AROUND(1)
        } else if (meta.loop.flags == FLOODS && standard_metadata.egress_port == meta.loop.port) {
            DROP_COPY(standard_metadata)
        } else if (hdr.switchgnn.isValid()) {
            rewrite.apply(hdr, meta, standard_metadata.egress_port);
        }
    }
}
