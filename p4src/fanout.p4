// The slots that a packet adds to.
#pragma once

#include "metadata.p4"

#define SLOT_PARAMETERS(b) , slot_t slot##b, count_t expected##b, bit<3> row##b
#define TAKE_SLOT(b) \
    meta.slots.slot##b = slot##b; \
    meta.slots.expected##b = expected##b; \
    meta.slots.row##b = row##b;
#define NO_SLOT(b) \
    meta.slots.slot##b = 0; \
    meta.slots.expected##b = 0; \
    meta.slots.row##b = 0;

// The slots of a source's feature: for each hop of the loop at most one (slot, expected
// count) per bank.
control Fanout(in headers_t hdr, inout metadata_t meta) {
    // last_hop: no entry with a higher hop follows.
    // last_bank: the highest bank that the entry uses. expected 0: the bank is not used. row: of
    // the bundle, 0 if it is none.
    action set_slots(bit<1> last_hop, bit<4> last_bank EACH_BANK(SLOT_PARAMETERS)) {
        meta.last_hop = last_hop;
        meta.last_bank = last_bank;
        EACH_BANK(TAKE_SLOT)
    }

    action unknown_block() {
        UNKNOWN(meta, UNKNOWN_BLOCK, block)
    }

    table fanout {
        key = {
            meta.loop.block: exact @name("block_id"); hdr.switchgnn.src_id: exact @name("src_id");
            meta.loop.hop: exact @name("hop");
        }
        actions = { set_slots; @defaultonly unknown_block; }
        const default_action = unknown_block;
        size = MAX_ENTRIES;
    }

    apply { fanout.apply(); }
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
        EACH_BANK(NO_SLOT)
        meta.last_bank = meta.destination_bank;
        meta.last_hop = 1;
        EACH_BANK(OWN_SLOT)
    }
}
