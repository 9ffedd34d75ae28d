// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// One bank whose slots are a pool: a destination gets one when its first contribution
// comes, if one is free, and gives it back when its sum leaves. What finds no slot
// leaves as it is, to the worker of its destination.
//
// A slot is named by a number from 1; 0 is none. Nobody has to clear anything: under
// a newer tag all slots are free, and every destination begins anew. So a slot that
// is never given back, because a contribution was lost, is lost for one tag only.
#ifndef _POOLED_AGGREGATOR_
#define _POOLED_AGGREGATOR_

#include "../headers.p4"
#include "../metadata.p4"
#include "../slots.p4"
#include "../packed_add.p4"
#include "../sizes.p4"

const bit<32> DESTINATIONS_PER_BANK = MAX_RESULTS / BANKS;

// One more event: no slot was free, and the contribution went to the worker as it came.
const bit<32> SLOT_OVERFLOWED = SLOT_EVENTS;
const bit<32> POOL_EVENTS = SLOT_EVENTS + 1;

control PooledAggregator(in headers_t hdr,
                         inout metadata_t meta,
                         in slot_t destination,
                         in count_t expected,
                         in slot_t limit)
                        (bit<4> bank) {
    // tag ++ contributions seen ++ slot ++ contributions in it ++ their sources' ids,
    // added up
    register<bit<168>>(DESTINATIONS_PER_BANK) destinations;
    // tag ++ slots that have ever been handed out under it ++ length of the free list
    register<bit<128>>(1) shelf;
    // Slots that were given back; the last one is handed out first.
    register<slot_t>(SLOTS_PER_BANK) free_slots;
    register<lanes_t>(SLOTS_PER_BANK) value;
    counter(POOL_EVENTS, CounterType.packets) events;

    bit<32> index;
    bit<168> content;
    bit<128> standing;
    count_t seen;
    slot_t slot;
    count_t added;
    vertex_t sources;
    slot_t handed_out;
    slot_t free;

    action look() {
        index = (bit<32>) destination;
        destinations.read(content, index);
        shelf.read(standing, 0);
        meta.contributions = meta.contributions + 1;
    }

    action unpack() {
        seen = content[167:88] == meta.tag ? content[87:72] : 0;
        slot = content[167:88] == meta.tag ? content[71:48] : 0;
        added = content[167:88] == meta.tag ? content[47:32] : 0;
        sources = content[167:88] == meta.tag ? content[31:0] : 0;
        handed_out = standing[127:48] == meta.tag ? standing[47:24] : 0;
        free = standing[127:48] == meta.tag ? standing[23:0] : 0;
    }

    action take_returned() {
        free = free - 1;
        free_slots.read(slot, (bit<32>) free);
    }

    action take_new() {
        handed_out = handed_out + 1;
        slot = handed_out;
    }

    action give_back() {
        free_slots.write((bit<32>) free, slot);
        free = free + 1;
        slot = 0;
    }

    action fill() {
        value.write((bit<32>) (slot - 1), meta.first);
        added = 1;
        sources = hdr.switchgnn.src_id;
    }

    action add() {
        value.read(meta.sum.lanes.chunk0, (bit<32>) (slot - 1));
        meta.sum.lanes.chunk0 = PACKED_ADD(meta.sum.lanes.chunk0, meta.first);
        value.write((bit<32>) (slot - 1), meta.sum.lanes.chunk0);
        added = added + 1;
        sources = sources + hdr.switchgnn.src_id;
    }

    action add_to_nothing() {
        meta.sum.lanes.chunk0 = meta.first;
        added = 1;
        sources = hdr.switchgnn.src_id;
    }

    // The loop goes on behind this bank.
    action leave() {
        meta.completed = 1;
        meta.bank = bank;
        meta.slot = destination;
    }

    action complete() {
        events.count(SLOT_COMPLETED);
        meta.sum.count = added;
        meta.sum.sources = sources;
        leave();
    }

    action overflow() {
        events.count(SLOT_OVERFLOWED);
        meta.sum.overflow = 1;
        meta.sum.lanes.chunk0 = meta.first;
        leave();
    }

    action abandon() {
        events.count(SLOT_RELEASED);
        seen = RELEASED;
    }

    action remember() {
        destinations.write(index, meta.tag ++ seen ++ slot ++ added ++ sources);
        shelf.write(0, meta.tag ++ handed_out ++ free);
    }

    apply {
        if (expected != 0 && meta.loop.next_bank <= bank && meta.completed == 0) {
            look();
            // The tag of the pool is never older than that of a destination.
            if (standing[127:48] > meta.tag) {
                events.count(SLOT_STALE);
            } else {
                unpack();
                if (hdr.switchgnn.kind == kind_t.RECALL) {
                    meta.sum.count = seen;
                } else if (seen == RELEASED) {
                    events.count(SLOT_RELEASED);
                } else if (hdr.switchgnn.kind == kind_t.FETCH) {
                    abandon();
                    if (slot != 0) {
                        give_back();
                    }
                    remember();
                } else if (seen == expected) {
                    events.count(SLOT_OVERFULL);
                } else {
                    seen = seen + 1;
                    if (slot != 0) {
                        add();
                        if (seen == expected) {
                            complete();
                            give_back();
                        }
                    } else if (free == 0 && handed_out >= limit) {
                        overflow();
                    } else if (seen == expected) {
                        // It would give its slot back at once.
                        add_to_nothing();
                        complete();
                    } else {
                        if (free != 0) {
                            take_returned();
                        } else {
                            take_new();
                        }
                        fill();
                    }
                    remember();
                }
            }
        }
    }
}

#endif
