// A packet that leaves on a port: a sum, an acknowledgement or another answer, or a packet
// passed on unchanged, addressed to the worker or the switch at the port.
#pragma once

#include "metadata.p4"

// The addresses at the ends of the link.
control Address(inout headers_t hdr, in port_t egress_port) {
    action address(bit<48> switch_mac, bit<48> worker_mac,
                   bit<32> switch_ip, bit<32> worker_ip) {
        hdr.ethernet.src_addr = switch_mac;
        hdr.ethernet.dst_addr = worker_mac;
        hdr.ipv4.src_addr = switch_ip;
        hdr.ipv4.dst_addr = worker_ip;
    }

    table rewrite {
        key = { egress_port: exact @name("port"); }
        actions = { address; @defaultonly NoAction; }
        const default_action = NoAction;
        size = MAX_PORTS;
    }

    apply { rewrite.apply(); }
}

#ifndef TOFINO
#include "payload.p4"
#include "bundle.p4"

// A complete sum.
control Sum(inout headers_t hdr, in sum_t sum, in vertex_t destination) {
    action make_sum() {
        hdr.switchgnn.kind = kind_t.SUM;
        hdr.switchgnn.src_id = 0;
        hdr.switchgnn.dst_id = destination;
        hdr.switchgnn.count = sum.count;
        hdr.switchgnn.is_ack = 0;
        hdr.switchgnn.echo = 0;
    }

    apply {
#ifdef STRAWMAN
        if (sum.overflow == 1) {
            // Still a feature of its source.
            hdr.switchgnn.dst_id = destination;
            hdr.switchgnn.echo = 0;
        } else {
            make_sum();
            hdr.switchgnn.src_id = sum.sources;
        }
#else
        make_sum();
#endif
    }
}

// Must not be applied to the copy that goes around the loop, which stays unchanged.
control Rewrite(inout headers_t hdr, inout metadata_t meta, in port_t egress_port) {
    Sum()       sum;
    Gather()    gather;
    Narrow()    narrow;
    Payload()   payload;
    NoPayload() no_payload;
    Address()   address;

    // A feature to the switch above; `is_fetch` stays if it was asked for. Only leaves send it,
    // so its level is 1, whatever the packet that completed it claims.
    action make_partial() {
        hdr.switchgnn.kind = kind_t.FEATURE;
        hdr.switchgnn.src_id = meta.partial;
        hdr.switchgnn.dst_id = meta.destination;
        hdr.switchgnn.count = meta.sum.count;
        hdr.switchgnn.resend = 0;
        hdr.switchgnn.level = 1;
        hdr.switchgnn.echo = 0;
        // The width of the bundles that the spine sends.
        hdr.switchgnn.feature_group = meta.loop.rows == 0 ? 0 : (bit<16>) meta.frame_width;
        hdr.switchgnn.width = meta.frame_width >> meta.loop.rows;
    }

    // A part goes up as one contribution of all workers below.
    action make_reduce() {
        hdr.switchgnn.src_id = meta.switch_number;
        hdr.switchgnn.count = meta.sum.count;
    }

    action make_ack() {
        hdr.switchgnn.kind = kind_t.ACK;
        hdr.switchgnn.bits = BITS_32;
        hdr.switchgnn.is_ack = 1;
        hdr.switchgnn.count = meta.loop.accepted;
    }

    action make_missing() {
        hdr.switchgnn.kind = kind_t.MISSING;
        hdr.switchgnn.count = meta.sum.count;
    }

    // A MISSING for all below that contribute, beside the part that goes back up.
    action keep_missing() {
        meta.send_sum = 0;
        meta.send_ack = 1;
        meta.dscp = DSCP_CONTROL;
    }

    apply {
        if (meta.look_again == 1 && meta.destination_group != 0 && egress_port != meta.loop.port) {
            keep_missing();
        }
        if (meta.send_sum == 1 || meta.send_reduced == 1) {
            hdr.switchgnn.ecn = hdr.switchgnn.ecn | meta.sum.ecn;
            if (meta.send_reduced == 1) {
                if (meta.above_port != 0) {
                    make_reduce();
                } else {
                    hdr.switchgnn.kind = kind_t.REDUCED;
                    hdr.switchgnn.src_id = 0;
                    hdr.switchgnn.count = meta.sum.count;
                    hdr.switchgnn.resend = 0;
                }
            } else if (meta.partial != 0) {
                make_partial();
            } else {
                hdr.switchgnn.width = meta.frame_width;
                meta.send_ack = meta.to_replicas & meta.adds & hdr.switchgnn.echo;
                sum.apply(hdr, meta.sum, meta.destination);
                if (meta.send_ack == 1 && egress_port == meta.loop.port) {
                    // Also what is otherwise the Count of an acknowledgement.
                    hdr.switchgnn.is_ack = 1;
                    hdr.switchgnn.src_id = (vertex_t) meta.loop.accepted;
                }
            }
            if (meta.rows != 0 && meta.partial == 0 && !ROWS_FILL_CHUNKS(meta)) {
                gather.apply(meta);
            }
            if (meta.loop.narrow == 1) {
                narrow.apply(hdr, meta);
            }
            no_payload.apply(hdr);
            if (hdr.switchgnn.bits != NO_BODY) {
                payload.apply(hdr, meta.sum.lanes,
                              GROUPS(hdr.switchgnn.width, hdr.switchgnn.bits));
            }
            if (meta.rows != 0 && meta.partial == 0) {
                hdr.switchgnn.dst_id = SUM_BUNDLES | (vertex_t) meta.result_worker;
                hdr.places.setValid();
                hdr.places.places = meta.sum.places;
                hdr.ipv4.total_len = hdr.ipv4.total_len + 16;
            }
        } else if (meta.send_ack == 1 || meta.send_missing == 1
                   || hdr.switchgnn.kind == kind_t.FETCH) {
            if (meta.send_ack == 1 && hdr.switchgnn.kind == kind_t.MISSING) {
                // From above, after its pass through the loop.
                hdr.switchgnn.count = meta.loop.accepted;
            } else if (meta.send_ack == 1) {
                make_ack();
            } else if (meta.send_missing == 1 && egress_port == meta.loop.port) {
                make_missing();
            } else {
                // A FETCH, or a RECALL to leaves other than the one that asked. Recovery has set a
                // count for the slot, not for the receiver.
                hdr.switchgnn.count = 0;
            }
            no_payload.apply(hdr);
        }
        hdr.ipv4.dscp = meta.dscp;
        hdr.ipv4.ttl = 64;
        meta.update_ipv4 = 1;
        meta.seal = 1;
        address.apply(hdr, egress_port);
    }
}
#endif
