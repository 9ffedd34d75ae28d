// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The slots that a packet adds to.
#pragma once

#include "metadata.p4"

// The slots of a source's feature: for each hop of the loop at most one (slot, expected
// count) per bank.
control Fanout(in headers_t hdr, inout metadata_t meta) {
    // last_hop: no entry with a higher hop follows.
    // last_bank: the highest bank that the entry uses. expected 0: the bank is not used. row: of
    // the bundle, 0 if it is none.
    action set_slots(bit<1> last_hop, bit<4> last_bank,
                     slot_t slot0, count_t expected0, bit<3> row0,
                     slot_t slot1, count_t expected1, bit<3> row1,
                     slot_t slot2, count_t expected2, bit<3> row2,
                     slot_t slot3, count_t expected3, bit<3> row3,
                     slot_t slot4, count_t expected4, bit<3> row4,
                     slot_t slot5, count_t expected5, bit<3> row5,
                     slot_t slot6, count_t expected6, bit<3> row6,
                     slot_t slot7, count_t expected7, bit<3> row7) {
        meta.last_hop = last_hop;
        meta.last_bank = last_bank;
        meta.slots = { slot0, expected0, row0, slot1, expected1, row1,
                       slot2, expected2, row2, slot3, expected3, row3,
                       slot4, expected4, row4, slot5, expected5, row5,
                       slot6, expected6, row6, slot7, expected7, row7 };
    }

    action unknown_block() {
        meta.outcome = UNKNOWN_BLOCK;
    }

    table fanout {
        key = {
            hdr.switchgnn.block_id: exact @name("block_id");
            hdr.switchgnn.src_id:   exact @name("src_id");
            meta.loop.hop:          exact @name("hop");
        }
        actions = {
            set_slots;
            @defaultonly unknown_block;
        }
        const default_action = unknown_block;
        size = MAX_ENTRIES;
    }

    apply {
        if (fanout.apply().hit) {
            if (hdr.switchgnn.count != 1) {
                meta.outcome = WRONG_COUNT;
            }
        }
    }
}

// The slot of a packet that names its destination: a recall, a fetch, a MISSING from above,
// or a partial sum. Must be applied after Destination.
#define OWN_SLOT(b) \
    if (meta.destination_bank == b) { \
        meta.slots.slot##b = meta.destination_slot; \
        meta.slots.expected##b = meta.destination_expected; \
    }

control OwnSlot(inout metadata_t meta) {
    apply {
        meta.slots = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                       0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
        meta.last_bank = meta.destination_bank;
        meta.last_hop = 1;
        OWN_SLOT(0)
        OWN_SLOT(1)
        OWN_SLOT(2)
        OWN_SLOT(3)
        OWN_SLOT(4)
        OWN_SLOT(5)
        OWN_SLOT(6)
        OWN_SLOT(7)
    }
}
