// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A sum that leaves: its contents, and the packet that carries it.
#ifndef _SUM_
#define _SUM_

#include "headers.p4"

struct sum_t {
    chunks_t lanes;
    count_t  count;  // contributions
}

control Sum(inout headers_t hdr, in sum_t sum, in vertex_t destination) {
    action make_sum() {
        hdr.switchgnn.kind = kind_t.SUM;
        hdr.switchgnn.src_id = 0;
        hdr.switchgnn.dst_id = destination;
        hdr.switchgnn.count = sum.count;
        hdr.switchgnn.echo = 0;
    }

    apply {
        make_sum();
    }
}

#endif
