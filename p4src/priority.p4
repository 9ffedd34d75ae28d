// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The class of a packet that leaves. Packets without numbers overtake those with: a worker that
// waits for an acknowledgement behind its own sums sends nothing meanwhile. The kind decides; a
// DSCP that arrives is ignored.
//
// What the switch answers is ahead of what other workers ask, so that a worker which floods the
// others with questions cannot delay their acknowledgements.
#ifndef _PRIORITY_
#define _PRIORITY_

#include "metadata.p4"

const bit<3> PRIORITY_NUMBERS = 0;
const bit<3> PRIORITY_QUESTIONS = 1;
const bit<3> PRIORITY_ANSWERS = 2;

// Must be applied last in ingress, when it is decided what leaves.
control Priority(in headers_t hdr, inout metadata_t meta, out bit<3> priority) {
    apply {
        priority = PRIORITY_NUMBERS;
        if (hdr.switchgnn.isValid() && meta.send_sum == 0 && meta.send_reduced == 0) {
            if (meta.send_ack == 1 || meta.send_missing == 1
                    || hdr.switchgnn.kind == kind_t.DONE
                    || hdr.switchgnn.kind == kind_t.ADVANCE
                    || hdr.switchgnn.kind == kind_t.WAITING
                    || hdr.switchgnn.kind == kind_t.MISSING) {
                priority = PRIORITY_ANSWERS;
            } else if (hdr.switchgnn.kind == kind_t.RECALL
                       || hdr.switchgnn.kind == kind_t.FETCH
                       || hdr.switchgnn.kind == kind_t.NOTICE
                       || hdr.switchgnn.kind == kind_t.REDUCING) {
                priority = PRIORITY_QUESTIONS;
            }
        }
        meta.urgent = priority == PRIORITY_NUMBERS ? 1w0 : 1w1;
    }
}

#endif
