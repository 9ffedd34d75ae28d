// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A port may bring in whole frames with a right checksum, and of our own kinds only those that
// workers send, or a switch above. A packet of our protocol in a fragment, with options or
// after a VLAN tag, which a host's kernel removes, would be forwarded like ordinary traffic, and a
// host might take it for one of the switch. A packet of another session is left over from an
// earlier install, or its worker does not know of this one yet; Barrier answers the latter.
// Must be applied on the first pass only, after Session and Worker.
#ifndef _ADMISSION_
#define _ADMISSION_

#include "metadata.p4"

control Admission(in headers_t hdr,
                  inout metadata_t meta,
                  in standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.parser_error != error.NoError
                || standard_metadata.checksum_error == 1
                || hdr.ethernet.ether_type == ETHERTYPE_VLAN
                || hdr.ethernet.ether_type == ETHERTYPE_SERVICE_VLAN
                || (hdr.ipv4.isValid() && hdr.ipv4.protocol == PROTOCOL_SWITCHGNN
                    && !hdr.switchgnn.isValid())) {
            meta.outcome = MALFORMED;
        } else if (hdr.switchgnn.isValid()) {
            if (hdr.switchgnn.version != SWITCHGNN_VERSION
                    || (hdr.switchgnn.width > meta.loop.width
                        && (!IS_REDUCE(hdr.switchgnn) || hdr.switchgnn.width > LANES_256))
                    || (hdr.barrier.isValid() && hdr.barrier.magnitude > LARGEST_FLOAT)) {
                meta.outcome = MALFORMED;
            } else if (meta.from_above == 1) {
                if (hdr.switchgnn.kind == kind_t.DONE
                        || hdr.switchgnn.kind == kind_t.REDUCE
                        || (hdr.switchgnn.kind == kind_t.FEATURE
                            && hdr.switchgnn.resend == 0)) {
                    meta.outcome = UNKNOWN_KIND;
                }
            } else if (hdr.switchgnn.kind != kind_t.FEATURE
                       && hdr.switchgnn.kind != kind_t.DONE
                       && hdr.switchgnn.kind != kind_t.RECALL
                       && hdr.switchgnn.kind != kind_t.FETCH
                       && hdr.switchgnn.kind != kind_t.NOTICE
                       && hdr.switchgnn.kind != kind_t.REDUCE
                       && hdr.switchgnn.kind != kind_t.REDUCING
                       && (hdr.switchgnn.kind != kind_t.REDUCED
                           || hdr.switchgnn.resend == 0)) {
                meta.outcome = UNKNOWN_KIND;
            }
            if (meta.outcome == AGGREGATED && hdr.switchgnn.kind != kind_t.DONE
                    && OTHER_SESSION(hdr, meta)) {
                meta.outcome = WRONG_SESSION;
            }
        }
    }
}

#endif
