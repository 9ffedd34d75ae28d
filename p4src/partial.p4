// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What a partial sum may do: it goes into the slot of the destination that it names. The
// destination must await partial sums of its sender, so that nobody can spoil the sums of
// others, and it holds a part of the sum at most: whoever counts more would complete or
// release the slot for all. How many rows it adds up, the switch does not know.
// Must be applied after Destination and Ownership.
#ifndef _PARTIAL_
#define _PARTIAL_

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"

control Partial(in headers_t hdr, inout metadata_t meta) {
    // One bit for each worker; of a spine for each worker behind a leaf that sends a part.
    action set_senders(worker_set_t senders) {
        meta.partial_senders = senders;
    }

    action no_senders() {
        meta.partial_senders = 0;
    }

    table partial {
        key = {
            hdr.switchgnn.block_id: exact @name("block_id");
            hdr.switchgnn.dst_id:   exact @name("dst_id");
        }
        actions = {
            set_senders;
            @defaultonly no_senders;
        }
        const default_action = no_senders;
        size = MAX_RESULTS;
    }

    apply {
        partial.apply();
        if ((meta.partial_senders & meta.worker_bit) == 0) {
            meta.outcome = WRONG_PORT;
        } else if (hdr.switchgnn.count == 0
                   || hdr.switchgnn.count > meta.destination_expected) {
            meta.outcome = WRONG_COUNT;
        }
    }
}

#endif
