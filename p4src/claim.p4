// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Whether a packet may touch what it names: the vertices must be known, and its sender
// must be the one who may speak for them. What may not be added to slots, because it
// is between a worker and a switch above or is there to recover a sum, gets its own way.
// Must be applied once per packet, on its first pass, after Worker and Tier.
#ifndef _CLAIM_
#define _CLAIM_

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"
#include "destination.p4"
#include "source.p4"
#include "ownership.p4"
#include "partial.p4"
#include "passage.p4"
#include "recovery.p4"

control Claim(inout headers_t hdr,
              inout metadata_t meta,
              inout standard_metadata_t standard_metadata) {
    Destination() destination;
    Source()      source;
    Ownership()   ownership;
    Partial()     partial;
    Passage()     passage;
    Recovery()    recovery;

    // How often each worker has had a slot released: who does it all the time is known.
    counter(MAX_WORKERS, CounterType.packets) releases;

    apply {
        // A vertex's feature names no destination. That of a fetch from above is not here.
        if ((hdr.switchgnn.kind != kind_t.FEATURE || hdr.switchgnn.resend == 1
                    || IS_PARTIAL(hdr.switchgnn.src_id))
                && (hdr.switchgnn.kind != kind_t.FETCH || meta.from_above == 0)) {
            destination.apply(hdr, meta);
        }
        // The source of a feature from above, or of a fetch that goes up, is not here.
        if ((hdr.switchgnn.kind == kind_t.FEATURE && meta.from_above == 0)
                || (hdr.switchgnn.kind == kind_t.FETCH && meta.destination_above == 0)) {
            source.apply(hdr, meta);
        }
        // A switch above has checked what it sends.
        if (meta.outcome == AGGREGATED && meta.from_above == 0) {
            ownership.apply(hdr, meta);
            if (meta.outcome == AGGREGATED && hdr.switchgnn.kind == kind_t.FETCH) {
                releases.count((bit<32>) meta.worker);
            } else if (meta.outcome == AGGREGATED && hdr.switchgnn.kind == kind_t.FEATURE
                       && IS_PARTIAL(hdr.switchgnn.src_id)) {
                partial.apply(hdr, meta);
            }
        }
        if (meta.outcome == AGGREGATED) {
            passage.apply(hdr, meta, standard_metadata);
        }
        if ((meta.outcome == AGGREGATED
                && (hdr.switchgnn.kind != kind_t.FEATURE || hdr.switchgnn.resend == 1))
                || meta.look_again == 1) {
            recovery.apply(hdr, meta, standard_metadata);
        }
    }
}

#endif
