// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// How a worker gets a sum that does not come. A recall asks the switch to send it again and adds
// nothing; with `resend`, it asks for the partial sums of the leaves as well. A fetch asks the
// owner for a feature and releases the slot: the worker now sums this vertex itself, the slot
// can no longer complete, and so no sum follows a fetch. The owner's answer, a feature with
// `resend`, bypasses the slots.
//
// A recall and a fetch touch their slot as a contribution of zero lanes, with a count of 0
// or of RELEASED.
// Must be applied after Ownership.
#ifndef _RECOVERY_
#define _RECOVERY_

#include "metadata.p4"
#include "payload.p4"

control Recovery(inout headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    Payload() payload;
    chunks_t zeros;

    action relay_to(port_t port, outcome_t outcome) {
        meta.outcome = outcome;
        standard_metadata.egress_spec = port;
    }

    action touch(count_t count) {
        meta.touches_slot = 1;
        hdr.switchgnn.count = count;
    }

    action no_lanes() {
        zeros = { 0, 0, 0, 0, 0, 0, 0, 0 };
    }

    apply {
        if (hdr.switchgnn.kind == kind_t.FEATURE) {
            // To its worker, the worker's leaf, or a switch above.
            relay_to(meta.destination_port, RESENT);
        } else {
            if (hdr.switchgnn.kind == kind_t.FETCH) {
                relay_to(meta.source_port, FETCHED);
                touch(RELEASED);
            } else if (hdr.switchgnn.kind == kind_t.MISSING) {
                // Its count goes around the loop with it.
                meta.loop.accepted = hdr.switchgnn.count;
                touch(0);
            } else {
                meta.outcome = RECALLED;
                touch(0);
            }
            no_lanes();
            payload.apply(hdr, zeros);
        }
    }
}

#endif
