// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Whoever speaks for a vertex must be behind its port (invariant 6): for a
// feature that is the source, for a recall or a fetch the destination. What comes
// from above has been through this there.
// Must be applied after Source and Destination.
#ifndef _OWNERSHIP_
#define _OWNERSHIP_

#include "headers.p4"

control Ownership(in headers_t hdr, inout metadata_t meta) {
    apply {
        if (meta.from_above == 1) {
            // Checked.
        } else if (hdr.switchgnn.kind == kind_t.FEATURE) {
            if (meta.source_port != meta.loop.port) {
                meta.outcome = WRONG_PORT;
            }
        } else if (meta.destination_port != meta.loop.port) {
            meta.outcome = WRONG_PORT;
        }
    }
}

#endif
