// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What passes between a worker and a switch above this one: a recall or a fetch of a
// sum that is completed above goes up, and the answers come down. A switch above has
// checked whose they are.
//
// A MISSING from above tells that a sum is not complete. This switch's part may have been
// lost on its way; if the MISSING says so (`resend`), the slot is touched as by a recall,
// and a part that is complete goes up once more while the MISSING goes down.
// Must be applied after Source, Destination and Ownership.
#ifndef _PASSAGE_
#define _PASSAGE_

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"

control Passage(inout headers_t hdr,
                inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action pass_on(port_t port) {
        meta.outcome = PASSED_ON;
        standard_metadata.egress_spec = port;
    }

    apply {
        if (meta.from_above == 0) {
            if (meta.destination_above != 0 && hdr.switchgnn.kind != kind_t.FEATURE) {
                pass_on(meta.destination_above);
            }
        } else if (hdr.switchgnn.kind == kind_t.FETCH) {
            pass_on(meta.source_port);
        } else if (hdr.switchgnn.kind == kind_t.SUM) {
            pass_on(meta.destination_port);
        } else if (hdr.switchgnn.kind == kind_t.MISSING) {
            pass_on(meta.destination_port);
            meta.look_again = hdr.switchgnn.resend;
        }
    }
}

#endif
