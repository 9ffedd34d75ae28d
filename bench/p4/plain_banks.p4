// The baseline of the product's banks: one slot per pass and one register of
// 32 bits per lane, the usual form of in-network aggregation. Only bank 0 of a
// fanout entry is used, and it has the memory of all banks.
#pragma once

#include "../../p4src/metadata.p4"

#define EACH_LANE(DO) \
    DO(0)  DO(1)  DO(2)  DO(3)  DO(4)  DO(5)  DO(6)  DO(7)  \
    DO(8)  DO(9)  DO(10) DO(11) DO(12) DO(13) DO(14) DO(15) \
    DO(16) DO(17) DO(18) DO(19) DO(20) DO(21) DO(22) DO(23) \
    DO(24) DO(25) DO(26) DO(27) DO(28) DO(29) DO(30) DO(31)

#define LANE(n) lanes[32 * (n) + 31:32 * (n)]
#define DECLARE_REGISTER(n) register<bit<32>>(SLOTS_PER_BANK * BANKS) value##n;
#define DECLARE_SUM(n) bit<32> sum##n;
#define OVERWRITE(n) \
    sum##n = LANE(n); \
    value##n.write(index, sum##n);
#define ADD(n) \
    value##n.read(sum##n, index); \
    sum##n = sum##n + LANE(n); \
    value##n.write(index, sum##n);

control PlainAggregator(in headers_t hdr,
                        inout metadata_t meta,
                        in lanes_t lanes,
                        in slot_t slot,
                        in count_t expected)
                       (bit<4> bank) {
    EACH_LANE(DECLARE_REGISTER)
    register<bit<96>>(SLOTS_PER_BANK * BANKS) state;  // see EMPTY_OF; no marks
    counter(SLOT_EVENTS, CounterType.packets) events;

    EACH_LANE(DECLARE_SUM)
    bit<32> index;
    bit<96> content;

    action look() {
        state.read(content, index);
        meta.contributions = meta.contributions + 1;
    }

    action add() {
        EACH_LANE(ADD)
        meta.sum.count = content[15:0] |+| hdr.switchgnn.count;
        state.write(index, meta.oldest + (bit<96>) meta.sum.count);
    }

    action overwrite() {
        EACH_LANE(OVERWRITE)
        meta.sum.count = hdr.switchgnn.count;
        state.write(index, meta.oldest + (bit<96>) hdr.switchgnn.count);
    }

    action collect() {
        meta.sum.lanes.chunk0 = sum31 ++ sum30 ++ sum29 ++ sum28 ++ sum27 ++ sum26 ++ sum25 ++ sum24
            ++ sum23 ++ sum22 ++ sum21 ++ sum20 ++ sum19 ++ sum18 ++ sum17 ++ sum16
            ++ sum15 ++ sum14 ++ sum13 ++ sum12 ++ sum11 ++ sum10 ++ sum9 ++ sum8
            ++ sum7 ++ sum6 ++ sum5 ++ sum4 ++ sum3 ++ sum2 ++ sum1 ++ sum0;
        meta.completed = 1;
        meta.bank = bank;
        meta.slot = slot;
    }

    apply {
        if (expected != 0 && meta.loop.next_bank <= bank) {
            index = meta.loop.first_slot + (bit<32>) slot;
            look();
            if (content > meta.newest) {
                events.count(SLOT_STALE);
            } else {
                if (content >= meta.oldest) {
                    add();
                } else {
                    overwrite();
                }
                if (meta.sum.count == expected) {
                    events.count(SLOT_COMPLETED);
                    collect();
                } else if (meta.sum.count > expected) {
                    if (meta.sum.count == RELEASED) {
                        events.count(SLOT_RELEASED);
                    } else {
                        events.count(SLOT_OVERFULL);
                    }
                }
            }
        }
    }
}

control Banks(in headers_t hdr, inout metadata_t meta) {
    PlainAggregator(0) bank0;

    // Of each job cell n: passes that made n contributions.
    counter(JOB_CELLS << PASS_BITS, CounterType.packets) passes;

    apply {
        if (hdr.chunk0.isValid()) {
            bank0.apply(hdr, meta, hdr.chunk0.lanes, meta.slots.slot0, meta.slots.expected0);
        }
        if (meta.adds == 1) {
            passes.count(meta.loop.first_passes + meta.contributions);
        }
    }
}
