// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What leaves on a port: the loop copy keeps the feature as it came, the others
// become a sum, an acknowledgement or another answer, or are relayed, addressed to
// the worker or the switch behind the port.
#ifndef _DEPARTURE_
#define _DEPARTURE_

#include "headers.p4"
#include "sizes.p4"

const bit<16> SUM_LENGTH = 20 + 26 + 128;
const bit<16> BARE_LENGTH = 20 + 26;

control Departure(inout headers_t hdr, inout metadata_t meta, in port_t egress_port) {
    action address(bit<48> switch_mac, bit<48> worker_mac,
                   bit<32> switch_ip, bit<32> worker_ip) {
        hdr.ethernet.src_addr = switch_mac;
        hdr.ethernet.dst_addr = worker_mac;
        hdr.ipv4.src_addr = switch_ip;
        hdr.ipv4.dst_addr = worker_ip;
    }

    table departure {
        key = {
            egress_port: exact @name("port");
        }
        actions = {
            address;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = MAX_PORTS;
    }

    action seal() {
        hdr.ipv4.ttl = 64;
        meta.update_ipv4 = 1;
        meta.seal = 1;
    }

    action make_sum() {
        hdr.switchgnn.kind = kind_t.SUM;
#ifdef STRAWMAN
        hdr.switchgnn.src_id = meta.sum_sources;
#else
        hdr.switchgnn.src_id = 0;
#endif
        hdr.switchgnn.dst_id = meta.destination;
        hdr.switchgnn.count = meta.sum_count;
        hdr.switchgnn.echo = 0;
        hdr.payload.lanes = meta.sum;
        hdr.ipv4.total_len = SUM_LENGTH;
    }

    // A feature to the switch above; Level says how many have added to it, and
    // `is_fetch` stays if it was asked for.
    action make_partial() {
        hdr.switchgnn.kind = kind_t.FEATURE;
        hdr.switchgnn.src_id = meta.destination;
        hdr.switchgnn.dst_id = 0;
        hdr.switchgnn.count = meta.sum_count;
        hdr.switchgnn.resend = 0;
        hdr.switchgnn.level = hdr.switchgnn.level + 1;
        hdr.switchgnn.echo = 0;
        hdr.switchgnn.feature_group = 0;
        hdr.payload.setValid();
        hdr.payload.lanes = meta.sum;
        hdr.ipv4.total_len = SUM_LENGTH;
    }

#ifdef STRAWMAN
    // Still a feature, and its source's; the destination's worker adds it.
    action make_overflow() {
        hdr.switchgnn.dst_id = meta.destination;
        hdr.switchgnn.echo = 0;
        hdr.ipv4.total_len = SUM_LENGTH;
    }
#endif

    action strip() {
        hdr.ipv4.total_len = BARE_LENGTH;
        hdr.payload.setInvalid();
    }

    action make_ack() {
        hdr.switchgnn.kind = kind_t.ACK;
        hdr.switchgnn.is_ack = 1;
        hdr.switchgnn.count = meta.loop.accepted;
        strip();
    }

    // What Recovery made of it for the slot is not for its receiver.
    action make_fetch() {
        hdr.switchgnn.count = 0;
        strip();
    }

    // A word from above that went around once.
    action make_missing_again() {
        hdr.switchgnn.count = meta.loop.accepted;
        strip();
    }

    // Who did not ask is asked for its part.
    action make_recall() {
        hdr.switchgnn.count = 0;
        strip();
    }

    action make_missing() {
        hdr.switchgnn.kind = kind_t.MISSING;
        hdr.switchgnn.count = meta.sum_count;
        strip();
    }

    apply {
#ifdef STRAWMAN
        if (meta.send_sum == 1 && meta.overflow == 1) {
            make_overflow();
        } else
#endif
        if (meta.send_sum == 1 && meta.partial == 1) {
            make_partial();
        } else if (meta.send_sum == 1) {
            make_sum();
        } else if (meta.send_ack == 1 && hdr.switchgnn.kind == kind_t.MISSING) {
            make_missing_again();
        } else if (meta.send_ack == 1) {
            make_ack();
        } else if (meta.send_missing == 1 && egress_port != meta.loop.port) {
            make_recall();
        } else if (meta.send_missing == 1) {
            make_missing();
        } else if (hdr.switchgnn.kind == kind_t.FETCH) {
            make_fetch();
        }
        seal();
        departure.apply();
    }
}

#endif
