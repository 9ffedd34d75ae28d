// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The way of a complete sum: the destination vertex, the port of its worker,
// and the first of the groups {that port, a loop port}, one per loop port. A
// leaf's part of a sum goes to a spine, as the feature of a partial sum.
#ifndef _RESULT_
#define _RESULT_

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"

control Result(in headers_t hdr, inout metadata_t meta) {
    action set_result(vertex_t vertex, port_t port, bit<16> group) {
        meta.destination = vertex;
        meta.result_port = port;
        meta.result_group = group;
        meta.send_sum = 1;
    }

    action set_partial(vertex_t vertex, vertex_t source, port_t port, bit<16> group) {
        meta.destination = vertex;
        meta.partial = source;
        meta.result_port = port;
        meta.result_group = group;
        meta.send_sum = 1;
    }

    // Complete sums without an entry.
    counter(1, CounterType.packets) unrouted;

    action no_result() {
        unrouted.count(0);
    }

    table result {
        key = {
            hdr.switchgnn.block_id: exact @name("block_id");
            meta.bank:              exact @name("bank");
            meta.slot:              exact @name("slot");
        }
        actions = {
            set_result;
            set_partial;
            @defaultonly no_result;
        }
        const default_action = no_result;
        size = MAX_RESULTS;
    }

    apply {
        if (meta.completed == 1) {
            result.apply();
        }
    }
}

#endif
