// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The strawman of the paper's section 2.3.2. It takes the place of ../banks.p4
// (-DBANKS_FILE, -DSTRAWMAN); the rest is the same program. What an entry of
// `fanout` calls a slot is here the number of a destination in its bank, and the
// slots are handed out first come, first served.
#ifndef _BANKS_
#define _BANKS_

#include "pool.p4"
#include "pooled_aggregator.p4"

control Banks(in headers_t hdr, inout metadata_t meta) {
    Pool() pool;
    PooledAggregator(0) bank0;
    PooledAggregator(1) bank1;
    PooledAggregator(2) bank2;
    PooledAggregator(3) bank3;
    PooledAggregator(4) bank4;
    PooledAggregator(5) bank5;
    PooledAggregator(6) bank6;
    PooledAggregator(7) bank7;

    // Cell n: passes that made n contributions.
    counter(BANKS + 1, CounterType.packets) passes;

    apply {
        pool.apply(meta);
        bank0.apply(hdr, meta, meta.slots.slot0, meta.slots.expected0, meta.limits.limit0);
        bank1.apply(hdr, meta, meta.slots.slot1, meta.slots.expected1, meta.limits.limit1);
        bank2.apply(hdr, meta, meta.slots.slot2, meta.slots.expected2, meta.limits.limit2);
        bank3.apply(hdr, meta, meta.slots.slot3, meta.slots.expected3, meta.limits.limit3);
        bank4.apply(hdr, meta, meta.slots.slot4, meta.slots.expected4, meta.limits.limit4);
        bank5.apply(hdr, meta, meta.slots.slot5, meta.slots.expected5, meta.limits.limit5);
        bank6.apply(hdr, meta, meta.slots.slot6, meta.slots.expected6, meta.limits.limit6);
        bank7.apply(hdr, meta, meta.slots.slot7, meta.slots.expected7, meta.limits.limit7);
        if (meta.outcome == AGGREGATED) {
            passes.count((bit<32>) meta.contributions);
        }
    }
}

#endif
