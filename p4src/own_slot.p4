// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The slot of a packet that names its destination, in place of slots from Fanout: that of a
// recall, a fetch, a MISSING from above, and a partial sum.
// Must be applied after Destination.
#ifndef _OWN_SLOT_
#define _OWN_SLOT_

#include "headers.p4"
#include "metadata.p4"

control OwnSlot(inout metadata_t meta) {
    // Only that slot, in the bank where it is.
    action no_slots() {
        meta.slots = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
        meta.last_bank = meta.destination_bank;
        meta.last_hop = 1;
    }

    apply {
        no_slots();
        if (meta.destination_bank == 0) {
            meta.slots.slot0 = meta.destination_slot;
            meta.slots.expected0 = meta.destination_expected;
        } else if (meta.destination_bank == 1) {
            meta.slots.slot1 = meta.destination_slot;
            meta.slots.expected1 = meta.destination_expected;
        } else if (meta.destination_bank == 2) {
            meta.slots.slot2 = meta.destination_slot;
            meta.slots.expected2 = meta.destination_expected;
        } else if (meta.destination_bank == 3) {
            meta.slots.slot3 = meta.destination_slot;
            meta.slots.expected3 = meta.destination_expected;
        } else if (meta.destination_bank == 4) {
            meta.slots.slot4 = meta.destination_slot;
            meta.slots.expected4 = meta.destination_expected;
        } else if (meta.destination_bank == 5) {
            meta.slots.slot5 = meta.destination_slot;
            meta.slots.expected5 = meta.destination_expected;
        } else if (meta.destination_bank == 6) {
            meta.slots.slot6 = meta.destination_slot;
            meta.slots.expected6 = meta.destination_expected;
        } else {
            meta.slots.slot7 = meta.destination_slot;
            meta.slots.expected7 = meta.destination_expected;
        }
    }
}

#endif
