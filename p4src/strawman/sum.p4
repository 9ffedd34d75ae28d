// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A sum that leaves, instead of ../sum.p4. It names the features in it, as the destination's
// worker must add those that found no slot; these leave unchanged.
#ifndef _SUM_
#define _SUM_

#include "../headers.p4"

struct sum_t {
    chunks_t lanes;
    count_t  count;     // contributions
    vertex_t sources;   // the ids of their sources, added up
    bit<1>   overflow;  // no slot was free: the feature itself leaves
}

control Sum(inout headers_t hdr, in sum_t sum, in vertex_t destination) {
    action make_sum() {
        hdr.switchgnn.kind = kind_t.SUM;
        hdr.switchgnn.src_id = sum.sources;
        hdr.switchgnn.dst_id = destination;
        hdr.switchgnn.count = sum.count;
        hdr.switchgnn.echo = 0;
    }

    // Still a feature of its source.
    action make_overflow() {
        hdr.switchgnn.dst_id = destination;
        hdr.switchgnn.echo = 0;
    }

    apply {
        if (sum.overflow == 1) {
            make_overflow();
        } else {
            make_sum();
        }
    }
}

#endif
