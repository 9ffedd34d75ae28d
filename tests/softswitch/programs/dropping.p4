// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Drops packets in actions and controls that have the standard metadata as a parameter.
#include <core.p4>
#include <v1model.p4>

header order_t {
    bit<8> kind;
    bit<8> port;
}

struct headers_t {
    order_t order;
}

struct metadata_t {
    bit<9> other;
}

parser P(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.order);
        transition accept;
    }
}

control V(inout headers_t h, inout metadata_t m) {
    apply {}
}

control Refusing(inout standard_metadata_t standard, in headers_t h) {
    action refuse() {
        mark_to_drop(standard);
    }
    table refused {
        key = { h.order.port : exact; }
        actions = { refuse; NoAction; }
        default_action = NoAction();
    }
    apply {
        refused.apply();
        if (h.order.kind == 3) {
            mark_to_drop(standard);
        }
    }
}

control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    Refusing() refusing;

    action refuse(inout standard_metadata_t standard) {
        mark_to_drop(standard);
    }
    apply {
        s.egress_spec = (bit<9>)h.order.port;
        if (h.order.kind == 1) {
            refuse(s);
        }
        if (h.order.kind == 2) {
            s.mcast_grp = 5;
            refuse(s);
        }
        refusing.apply(s, h);
        if (h.order.kind == 4) {
            refuse(s);
            s.egress_spec = 7;
        }
    }
}

control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    action refuse(inout standard_metadata_t standard) {
        mark_to_drop(standard);
    }
    apply {
        if (h.order.kind == 5) {
            refuse(s);
        }
    }
}

control C(inout headers_t h, inout metadata_t m) {
    apply {}
}

control D(packet_out p, in headers_t h) {
    apply {
        p.emit(h.order);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
