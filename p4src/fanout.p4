// The slots that a packet adds to.
#pragma once

#include "metadata.p4"

#define SLOT_PARAMETERS(b) , slot_t slot##b, count_t expected##b, bit<3> row##b

// The slots of a source's feature: for each hop of the loop at most one (slot, expected
// count) per bank.
control Fanout(in headers_t hdr, inout metadata_t meta) {
    // last_hop: no entry with a higher hop follows.
    // last_bank: the highest bank that the entry uses. expected 0: the bank is not used. row: of
    // the bundle, 0 if it is none.
    action set_slots(bit<1> last_hop, bit<4> last_bank EACH_BANK(SLOT_PARAMETERS)) {
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
            meta.loop.block:        exact @name("block_id");
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
        fanout.apply();
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
        EACH_BANK(OWN_SLOT)
    }
}
