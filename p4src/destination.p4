// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Behind which port a destination vertex is, and which slot sums for it.
#ifndef _DESTINATION_
#define _DESTINATION_

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"

control Destination(in headers_t hdr, inout metadata_t meta) {
    action set_destination(port_t port, bit<4> bank, slot_t slot, count_t expected) {
        meta.destination_port = port;
        meta.destination_bank = bank;
        meta.destination_slot = slot;
        meta.destination_expected = expected;
    }

    // The slot here is of a part, or expected is 0; the sum is completed above.
    action set_distant(port_t port, bit<4> bank, slot_t slot, count_t expected, port_t above) {
        meta.destination_port = port;
        meta.destination_bank = bank;
        meta.destination_slot = slot;
        meta.destination_expected = expected;
        meta.destination_above = above;
    }

    action unknown_destination() {
        meta.outcome = UNKNOWN_VERTEX;
    }

    table destination {
        key = {
            hdr.switchgnn.block_id: exact @name("block_id");
            hdr.switchgnn.dst_id:   exact @name("dst_id");
        }
        actions = {
            set_destination;
            set_distant;
            @defaultonly unknown_destination;
        }
        const default_action = unknown_destination;
        size = MAX_RESULTS;
    }

    apply {
        destination.apply();
    }
}

#endif
