// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What the switch knows of the newest round: the largest magnitude, and whose it is. All
// scales follow from it: the bits of non-negative float32 numbers compare like integers.
//
// It may grow until all workers have opened the round, and not afterwards: who heard of
// another one would use another scale. Every `done` of a later block says the magnitude that
// its worker knows. A switch that was restarted in the middle of an opening learns it from
// there; otherwise it must be the same. A leaf asks the switch above, which knows all workers.
// Must be applied to a `done` that was let through, after Session and Worker.
#ifndef _OPENING_
#define _OPENING_

#include "headers.p4"
#include "metadata.p4"

control Opening(in headers_t hdr, inout metadata_t meta, in bit<1> closed) {
    register<bit<48>>(1) opened;  // session ++ round
    register<bit<64>>(1) largest;  // magnitude ++ worker

    action learn() {
        meta.opening = meta.tag[79:32];
        meta.largest = hdr.barrier.magnitude ++ meta.reporter;
        opened.write(0, meta.opening);
        largest.write(0, meta.largest);
    }

    apply {
        // A leaf says whose the largest magnitude of its workers is.
        meta.reporter = meta.leaves_below == 1
            ? hdr.switchgnn.dst_id : (bit<32>) meta.worker;
        opened.read(meta.opening, 0);
        largest.read(meta.largest, 0);
        if (hdr.barrier.magnitude > meta.magnitude_limit) {
            meta.outcome = WRONG_MAGNITUDE;
        } else if (meta.tag[79:32] > meta.opening) {
            learn();
        } else if (meta.tag[79:32] == meta.opening) {
            if (closed == 0 || (hdr.switchgnn.block_id != 0 && meta.above_port != 0)) {
                if (hdr.barrier.magnitude > meta.largest[63:32]) {
                    learn();
                }
            } else if (hdr.switchgnn.block_id != 0
                       && hdr.barrier.magnitude != meta.largest[63:32]) {
                meta.outcome = WRONG_MAGNITUDE;
            }
        }
    }
}

#endif
