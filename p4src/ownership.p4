// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A packet that speaks for a vertex must come from that vertex's port (invariant 6): a
// feature speaks for its source, a recall and a fetch speak for their destination.
// Must be applied after Source and Destination.
#ifndef _OWNERSHIP_
#define _OWNERSHIP_

#include "headers.p4"
#include "metadata.p4"

control Ownership(in headers_t hdr, inout metadata_t meta) {
    apply {
        if (hdr.switchgnn.kind == kind_t.FEATURE) {
            if (meta.source_port != meta.loop.port) {
                meta.outcome = WRONG_PORT;
            }
        } else if (meta.destination_port != meta.loop.port) {
            meta.outcome = WRONG_PORT;
        }
    }
}

#endif
