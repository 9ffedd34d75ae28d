// The strawman's banks, instead of ../banks.p4. A slot in an entry of `fanout` is here the
// number of a destination in its bank. Each bank hands its slots out to destinations in the order
// of their first contributions, or shares them among jobs.
#pragma once

#include "../addition.p4"

// The slots of each bank that may be handed out: the strawman's memory. age: milliseconds after which
// another destination may take over a slot to which nothing was added; 0: jobs do not share slots.
#define LIMIT(b) slot_t limit##b;
struct limits_t {
    EACH_BANK(LIMIT)
    bit<32> age;
}

control SlotLimits(out limits_t each) {
    action set_limits(slot_t limit0, slot_t limit1, slot_t limit2, slot_t limit3,
                      slot_t limit4, slot_t limit5, slot_t limit6, slot_t limit7,
                      bit<32> age) {
        each = { limit0, limit1, limit2, limit3, limit4, limit5, limit6, limit7, age };
    }

    table slot_limits {
        actions = { set_limits; }
        default_action = set_limits(0, 0, 0, 0, 0, 0, 0, 0, 0);
        size = 1;
    }

    apply { slot_limits.apply(); }
}

const bit<32> DESTINATIONS_PER_BANK = MAX_RESULTS / BANKS;

// One more event: no slot was free, and the contribution went to the worker unchanged.
const bit<32> SLOT_OVERFLOWED = SLOT_EVENTS;
const bit<32> SHELF_EVENTS = SLOT_EVENTS + 1;

// A destination gets a slot for its first contribution, if one is free, and returns it with its
// sum. A contribution without a slot goes unchanged to the worker of its destination.
//
// Slots have numbers from 1; 0 is none. Nothing is cleared: under a newer tag all slots are
// free and every destination starts over. A slot that is never returned, because a
// contribution was lost, is lost for one tag only.
//
// Jobs that share slots have no shelf. A destination takes the slot that a hash of its tag, which has
// the session of its job, and its cell names, unless another owns it.
control ShelvedAggregator(in headers_t hdr,
                         inout metadata_t meta,
                         in lanes_t lanes,
                         in slot_t destination,
                         in count_t expected,
                         in slot_t limit,
                         in bit<32> age)
                        (bit<4> bank) {
    // tag ++ contributions seen ++ whether one in the slot was marked ++ slot ++ contributions in it
    // ++ sum of their sources' ids
    register<bit<168>>(DESTINATIONS_PER_BANK) destinations;
    // tag ++ slots ever handed out under it ++ length of the free list
    register<bit<128>>(1) shelf;
    // Returned slots; the last one is handed out first.
    register<slot_t>(SLOTS_PER_BANK) free_slots;
    // Of shared slots: job (0: none) ++ its tag ++ cell of the destination ++ time of the last
    // contribution, in microseconds
    register<bit<168>>(SLOTS_PER_BANK) owners;
    register<lanes_t>(SLOTS_PER_BANK) value;
    counter(SHELF_EVENTS, CounterType.packets) events;

    bit<32> index;
    bit<168> content;
    bit<128> standing;
    count_t seen;
    slot_t slot;
    count_t added;
    vertex_t sources;
    slot_t handed_out; slot_t free;
    tag_t newest;
    bit<8> job;
    bit<32> hashed;
    slot_t shared;  // 0: the slots are not
    bit<168> owner; bit<168> self;

    action look() {
        index = meta.loop.first_slot + (bit<32>) destination;
        destinations.read(content, index);
        shelf.read(standing, 0);
        newest = age == 0 ? standing[127:48] : content[167:88];
        meta.contributions = meta.contributions + 1;
    }

    action unpack() {
        seen = content[167:88] == meta.tag ? content[87:72] : 0;
        slot = content[167:88] == meta.tag ? 1w0 ++ content[70:48] : 0;
        meta.sum.ecn = slot != 0 ? content[71:71] : 0;
        added = content[167:88] == meta.tag ? content[47:32] : 0;
        sources = content[167:88] == meta.tag ? content[31:0] : 0;
        handed_out = standing[127:48] == meta.tag ? standing[47:24] : 0;
        free = standing[127:48] == meta.tag ? standing[23:0] : 0;
        shared = 0;
        owner = 0;
        self = 0;
    }

    action find_shared() {
        hash(hashed, HashAlgorithm.crc32, 32w0, { meta.tag, index }, (bit<32>) limit);
        shared = slot == 0 ? 1 + (slot_t) hashed : slot;
        job = (bit<8>) (meta.loop.first_passes >> PASS_BITS);
        self = job ++ meta.tag ++ index ++ meta.now;
        owners.read(owner, (bit<32>) (shared - 1));
        // A slot that was taken over has lost its part, and the worker fetches what was in it.
        slot = owner[167:48] == self[167:48] ? slot : 0;
        handed_out = limit;
        free = owner[167:160] == 0 || (owner[167:160] == job && owner[159:80] < meta.tag)
            || meta.now > owner[47:0] + (bit<48>) age * 1000 ? (slot_t) 1 : 0;
    }

    action give_back() {
        free_slots.write((bit<32>) free, slot);
        free = free + 1;
        slot = 0;
        owner = 0;
    }

    action fill() {
        value.write((bit<32>) (slot - 1), lanes);
        owner = self;
        added = 1;
        sources = hdr.switchgnn.src_id;
        meta.sum.ecn = hdr.switchgnn.ecn;
    }

    action add() {
        value.read(meta.sum.lanes.chunk0, (bit<32>) (slot - 1));
        meta.sum.lanes.chunk0 = PACKED_ADD(meta.sum.lanes.chunk0, lanes);
        value.write((bit<32>) (slot - 1), meta.sum.lanes.chunk0);
        owner = self;
        added = added + 1;
        sources = sources + hdr.switchgnn.src_id;
        meta.sum.ecn = meta.sum.ecn | hdr.switchgnn.ecn;
    }

    // The loop resumes with the next bank.
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
        meta.sum.lanes.chunk0 = lanes;
        leave();
    }

    action remember() {
        destinations.write(index, meta.tag ++ seen ++ meta.sum.ecn ++ slot[22:0] ++ added ++ sources);
        shelf.write(0, meta.tag ++ handed_out ++ free);
    }

    apply {
        if (expected != 0 && meta.loop.next_bank <= bank && meta.completed == 0) {
            look();
            // The tag of the shelf is never older than that of a destination.
            if (newest > meta.tag) {
                events.count(SLOT_STALE);
            } else {
                unpack();
                if (age != 0 && limit != 0) {
                    find_shared();
                }
                if (hdr.switchgnn.kind == kind_t.RECALL) {
                    meta.sum.count = seen;
                } else if (seen == RELEASED) {
                    events.count(SLOT_RELEASED);
                } else if (hdr.switchgnn.kind == kind_t.FETCH) {
                    events.count(SLOT_RELEASED);
                    seen = RELEASED;
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
                        // It would return its slot at once.
                        meta.sum.lanes.chunk0 = lanes;
                        added = 1;
                        sources = hdr.switchgnn.src_id;
                        complete();
                    } else {
                        if (shared != 0) {
                            slot = shared;
                        } else if (free != 0) {
                            free = free - 1;
                            free_slots.read(slot, (bit<32>) free);
                        } else {
                            handed_out = handed_out + 1;
                            slot = handed_out;
                        }
                        fill();
                    }
                    remember();
                }
                if (shared != 0) {
                    owners.write((bit<32>) (shared - 1), owner);
                }
            }
        }
    }
}

#define DECLARE_BANK(b) ShelvedAggregator(b) bank##b;
#define ADD_TO(b) \
    bank##b.apply(hdr, meta, hdr.chunk0.lanes, meta.slots.slot##b, \
                  meta.slots.expected##b, limits.limit##b, limits.age);

control Banks(in headers_t hdr, inout metadata_t meta) {
    SlotLimits() slot_limits;
    EACH_BANK(DECLARE_BANK)

    limits_t limits;

    // Of each job cell n: passes that made n contributions.
    counter(JOB_CELLS << PASS_BITS, CounterType.packets) passes;

    apply {
        slot_limits.apply(limits);
        if (hdr.chunk0.isValid()) {
            EACH_BANK(ADD_TO)
        }
        if (meta.adds == 1) {
            passes.count(meta.loop.first_passes + meta.contributions);
        }
    }
}
